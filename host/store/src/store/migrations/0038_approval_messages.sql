-- Which messages show a card: one in the session of the run, and those in the sessions that hear of it.
CREATE TABLE approval_messages (
    message INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    approval INTEGER NOT NULL REFERENCES approvals (id) ON DELETE CASCADE
) STRICT;
CREATE INDEX approval_messages_of_approval ON approval_messages (approval);

-- Cards that a channel has sent with something to choose, until what became of them is shown there as well.
CREATE TABLE channel_offers (
    channel TEXT NOT NULL,
    recipient TEXT NOT NULL, -- in the service's words
    letter TEXT NOT NULL, -- the id that it was sent with
    approval INTEGER NOT NULL, -- without a reference: what is shown there must change although the card is deleted
    due_ms INTEGER NOT NULL DEFAULT 0, -- of the next attempt to show what became of it
    attempts INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (channel, recipient, letter)
) STRICT, WITHOUT ROWID;
