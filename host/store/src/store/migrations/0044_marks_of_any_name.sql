-- When it was last tried to consolidate the facts is remembered as well: the program knows the names.
CREATE TABLE marks_anew (
    name TEXT PRIMARY KEY NOT NULL,
    at_ms INTEGER NOT NULL -- when it was last done
) STRICT, WITHOUT ROWID;
INSERT INTO marks_anew (name, at_ms) SELECT name, at_ms FROM marks;
DROP TABLE marks;
ALTER TABLE marks_anew RENAME TO marks;
