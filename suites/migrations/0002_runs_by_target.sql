-- The history of a case on a target, and the newest run of a target that did not come to its end.

CREATE INDEX runs_by_target ON runs (target, started_unix_ms);
