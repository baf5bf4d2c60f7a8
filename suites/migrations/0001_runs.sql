-- Runs, what they planned, and what came of it. Documents are JSON as the model's schema describes them; the columns beside
-- them are what is searched for.

CREATE TABLE runs (
    id              TEXT   NOT NULL PRIMARY KEY,
    started_unix_ms BIGINT NOT NULL,
    target          TEXT   NOT NULL,
    status          TEXT   NOT NULL,
    info            TEXT   NOT NULL,
    summary         TEXT
);

CREATE TABLE cases (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    id     TEXT NOT NULL,
    info   TEXT NOT NULL,
    PRIMARY KEY (run_id, id)
);

-- A planned case has no verdict yet; a run that was killed shows by them what it did not come to.
CREATE TABLE results (
    run_id      TEXT   NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    position    BIGINT NOT NULL,
    case_key    TEXT   NOT NULL,
    verdict     TEXT,
    duration_us BIGINT,
    result      TEXT,
    PRIMARY KEY (run_id, case_key)
);

CREATE INDEX results_by_key ON results (case_key, run_id);
