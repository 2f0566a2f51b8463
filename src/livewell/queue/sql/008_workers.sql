-- 0.8.0: which jobs were lost with a worker. Never edited after release; changes are a new numbered file.

ALTER TABLE livewell.job_failure ADD COLUMN worker bigint;     -- the incarnation that held it; NULL: it failed before this column was there
CREATE INDEX job_failure_lost_idx ON livewell.job_failure (worker, failed_at) WHERE outcome = 'lost';
