-- Replies that another version has replaced are not counted as unread, so the index has the others only.
DROP INDEX replies_of_session;
CREATE INDEX replies_of_session ON messages (session, id) WHERE role = 'assistant' AND replaced = 0;
