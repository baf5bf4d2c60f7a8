-- When the process of a run last showed that it lives, in seconds since 1970 by the database's clock. A run that is not over and
-- shows nothing for a while is broken. Runs of versions before this column have 0: their process is gone.
ALTER TABLE runs ADD COLUMN alive_unix_s BIGINT NOT NULL DEFAULT 0;

-- How long the run took until then, all of its parts together, in microseconds; 0 where nobody knows.
ALTER TABLE runs ADD COLUMN spent_us BIGINT NOT NULL DEFAULT 0;
