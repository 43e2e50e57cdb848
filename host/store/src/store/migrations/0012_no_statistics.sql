-- Statistics of a store with one message made SQLite read whole tables in one with a million. The queries are written so that
-- they need none: each names an index, or there is but one that fits.
DROP TABLE IF EXISTS sqlite_stat1;
DROP TABLE IF EXISTS sqlite_stat4;

-- A session in which nothing was said yet is as old as it is, and not from 1970.
UPDATE sessions SET active_ms = created_ms WHERE active_ms = 0;
