-- What the cases of a run say of each requirement, so that lists, trends and sections need not read the results: the strength of its level
-- (MUST, SHOULD, MAY) and the worst verdict, as its place among the verdicts from best to worst. Runs that are older than this have none.

CREATE TABLE judged (
    run_id      TEXT   NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    requirement TEXT   NOT NULL,
    strength    TEXT   NOT NULL,
    verdict     BIGINT NOT NULL,
    PRIMARY KEY (run_id, requirement)
);

CREATE INDEX judged_by_strength ON judged (run_id, strength, verdict);

-- Plans and tables of verdicts are read without the results beside them.
CREATE INDEX results_by_position ON results (run_id, position, case_key, verdict, duration_us);
