-- Up to which message a session's owner has read; what was there before this was known counts as read.
ALTER TABLE sessions ADD COLUMN read_to INTEGER NOT NULL DEFAULT 0; -- a message's id, or 0
UPDATE sessions SET read_to = coalesce((SELECT max(id) FROM messages WHERE session = sessions.id), 0);
-- Replies behind the mark are counted without reading a text.
CREATE INDEX replies_of_session ON messages (session, id) WHERE role = 'assistant';
