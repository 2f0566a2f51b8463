-- 0.8.0: what went wrong in each attempt of a job, not only in the last one.
-- Never edited after release; changes are a new numbered file.

CREATE TABLE livewell.job_failure (
    job_id      bigint      NOT NULL,
    fence       bigint      NOT NULL,               -- of the claim that failed
    failed_at   timestamptz NOT NULL,
    attempt     smallint    NOT NULL,
    outcome     text COLLATE "C" NOT NULL,          -- as in settle_jobs: retry, lost, refused
    error       text        NOT NULL,               -- redacted by the worker
    CONSTRAINT job_failure_pkey PRIMARY KEY (job_id, fence),
    CONSTRAINT job_failure_error_check CHECK (length(error) <= 1000)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE livewell.job_failure IS
    'What went wrong in each attempt of a job, the last twenty: for people who look at it.';
CREATE INDEX job_failure_failed_idx ON livewell.job_failure (failed_at);
