-- Where a session stands in listings: with the others, above them, or apart from them.
ALTER TABLE sessions ADD COLUMN placement TEXT NOT NULL DEFAULT 'listed'
    CHECK (placement IN ('listed', 'pinned', 'archived'));
