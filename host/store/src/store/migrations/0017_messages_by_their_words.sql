-- Messages by their words. As the other indexes this one holds no text of its own. A message that is sealed is in none: its
-- words stand nowhere in clear.
ALTER TABLE messages ADD COLUMN grams TEXT; -- as in facts; NULL: the index does not have this message
CREATE VIRTUAL TABLE message_words USING fts5 (
    text, grams, content = 'messages', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3'
);
INSERT INTO message_words (message_words, rank) VALUES ('secure-delete', 1);
CREATE VIRTUAL TABLE message_terms USING fts5vocab ('message_words', 'instance');

-- Messages that wait to be indexed, most because they are sealed: few, and looked through one by one.
CREATE TABLE unindexed (
    message INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE
) STRICT;
-- Where the index begins. What was there before it is taken in little by little, the newest first.
CREATE TABLE message_index (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    begins INTEGER NOT NULL -- the messages before this id wait; 0: none does
) STRICT;
INSERT INTO message_index (one, begins) SELECT 1, coalesce(max(id) + 1, 0) FROM messages;

CREATE TRIGGER message_added AFTER INSERT ON messages BEGIN
    INSERT INTO message_words (rowid, text, grams) SELECT new.id, new.text, new.grams WHERE new.grams IS NOT NULL;
    INSERT INTO unindexed (message) SELECT new.id WHERE new.grams IS NULL;
END;
CREATE TRIGGER message_changed AFTER UPDATE OF text, grams ON messages BEGIN
    INSERT INTO message_words (message_words, rowid, text, grams)
        SELECT 'delete', old.id, old.text, old.grams WHERE old.grams IS NOT NULL;
    INSERT INTO message_words (rowid, text, grams) SELECT new.id, new.text, new.grams WHERE new.grams IS NOT NULL;
    INSERT OR IGNORE INTO unindexed (message) SELECT new.id WHERE new.grams IS NULL;
    DELETE FROM unindexed WHERE message = new.id AND new.grams IS NOT NULL;
END;
CREATE TRIGGER message_removed AFTER DELETE ON messages WHEN old.grams IS NOT NULL BEGIN
    INSERT INTO message_words (message_words, rowid, text, grams) VALUES ('delete', old.id, old.text, old.grams);
END;
