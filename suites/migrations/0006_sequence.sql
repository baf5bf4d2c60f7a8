-- The order in which runs began, by the store: a wrong clock cannot change it. Runs that begin at the same moment may share a number.
ALTER TABLE runs ADD COLUMN sequence BIGINT NOT NULL DEFAULT 0;

-- 1 if the run plans less than the default tier of all cases, so that it cannot represent its target.
ALTER TABLE runs ADD COLUMN is_selection BIGINT NOT NULL DEFAULT 0;

-- The run whose cases this one runs again.
ALTER TABLE runs ADD COLUMN rerun_of TEXT;

UPDATE runs SET sequence = numbered.number
FROM (SELECT id AS run, ROW_NUMBER() OVER (ORDER BY started_unix_ms, id) AS number FROM runs) AS numbered
WHERE numbered.run = runs.id;

-- Older runs do not record whether cases were selected. Those with fewer cases than another run of the store count as selections.
UPDATE runs SET is_selection = 1
WHERE (SELECT COUNT(*) FROM cases WHERE cases.run_id = runs.id)
    < (SELECT MAX(planned.number) FROM (SELECT COUNT(*) AS number FROM cases GROUP BY run_id) AS planned);

DROP INDEX runs_by_target;
DROP INDEX runs_by_start;
CREATE INDEX runs_by_rerun ON runs (rerun_of);
CREATE INDEX runs_by_target_sequence ON runs (target, sequence);
CREATE INDEX runs_by_sequence ON runs (sequence, id);
