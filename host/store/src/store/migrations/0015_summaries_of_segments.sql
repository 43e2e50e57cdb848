-- Summaries belong to a segment: what was said before a /new is in no summary of what came after it.
CREATE TABLE summaries (
    session INTEGER NOT NULL REFERENCES sessions (id),
    segment INTEGER NOT NULL, -- the message after which the segment begins, or 0
    text TEXT NOT NULL,
    up_to INTEGER NOT NULL CHECK (up_to > 0), -- the last message that it holds
    sources TEXT NOT NULL, -- keys of the scratchpad that have those messages whole, oldest first; a JSON list
    PRIMARY KEY (session, segment)
) STRICT, WITHOUT ROWID;
-- What was summarized after a break may hold what was said before it, so it goes with the segment before.
INSERT INTO summaries (session, segment, text, up_to, sources)
SELECT id,
    coalesce((SELECT after FROM segments WHERE session = sessions.id AND after < summarized_to
              ORDER BY after DESC LIMIT 1 OFFSET 1), 0),
    summary, summarized_to, '[]'
FROM sessions WHERE summary IS NOT NULL AND summarized_to > 0;
