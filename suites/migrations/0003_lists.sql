-- Lists of runs: newest first, and how many cases of each have a verdict, without reading the results themselves.

CREATE INDEX runs_by_start ON runs (started_unix_ms, id);
CREATE INDEX results_by_run ON results (run_id, verdict);
