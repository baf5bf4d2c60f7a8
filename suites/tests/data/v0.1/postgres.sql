CREATE TABLE _sqlx_migrations (
    version BIGINT PRIMARY KEY,
    description TEXT NOT NULL,
    installed_on TIMESTAMPTZ NOT NULL DEFAULT now(),
    success BOOLEAN NOT NULL,
    checksum BYTEA NOT NULL,
    execution_time BIGINT NOT NULL
);
INSERT INTO _sqlx_migrations VALUES(1,'runs','2026-11-24 11:47:33',TRUE,'\x091f837b8df4936ab9780530e11bc64c422a1b50cc8dc4e059627564324da5ca18e733686621ce4f81b810c15dfdb493',444571);
INSERT INTO _sqlx_migrations VALUES(2,'runs by target','2026-11-24 11:47:33',TRUE,'\x98f2cdc313dae77623ccc25a24663362a87e0649f7684b528e12387b98ec65df41d2d2c98fdfbb2c1639408d44f7e23b',202792);
INSERT INTO _sqlx_migrations VALUES(3,'lists','2026-11-24 11:47:33',TRUE,'\x051dbe72666c721bda48c01a0de9095dcc30ceb8f71be3dc742bc0ac37e34eabe7f5cb0a21d2127d61126f25557cdd77',234620);
INSERT INTO _sqlx_migrations VALUES(4,'judged','2026-11-24 11:47:33',TRUE,'\xbc4c653d195046fc2a33327146ecbae22452f10de86ceb74cc6860d6b9708259c1113f22c77e6ca0fb5960de65fe1bc4',310372);
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
CREATE TABLE results (
    run_id      TEXT   NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    position    BIGINT NOT NULL,
    case_key    TEXT   NOT NULL,
    verdict     TEXT,
    duration_us BIGINT,
    result      TEXT,
    PRIMARY KEY (run_id, case_key)
);
CREATE TABLE judged (
    run_id      TEXT   NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    requirement TEXT   NOT NULL,
    strength    TEXT   NOT NULL,
    verdict     BIGINT NOT NULL,
    PRIMARY KEY (run_id, requirement)
);
CREATE INDEX results_by_key ON results (case_key, run_id);
CREATE INDEX runs_by_target ON runs (target, started_unix_ms);
CREATE INDEX runs_by_start ON runs (started_unix_ms, id);
CREATE INDEX results_by_run ON results (run_id, verdict);
CREATE INDEX judged_by_strength ON judged (run_id, strength, verdict);
CREATE INDEX results_by_position ON results (run_id, position, case_key, verdict, duration_us);
