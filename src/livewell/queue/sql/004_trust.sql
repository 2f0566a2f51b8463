-- 0.6.0: checks in the table itself, and what is kept of failures.
-- Never edited after release; changes are a new numbered file.

-- The traceback of a job's last failure, redacted and at most 8 kB as the worker sends it; NULL where there is none, or where a worker before 0.6.0 reported the failure.
ALTER TABLE livewell.job ADD COLUMN last_traceback text;
ALTER TABLE livewell.dead_job ADD COLUMN traceback text;

-- Workers claim with the credentials they have: "limiter credential" for each that this one cannot use.
ALTER TABLE livewell.worker ADD COLUMN lacks text[] COLLATE "C" NOT NULL DEFAULT '{}';

-- These get parameters with defaults: calls as before still fit, and there must not be two that do. A new database does not have them yet.
DO $drop$
BEGIN
    IF to_regprocedure('livewell.settle_jobs(bigint[], text[], text[], text[], float8[], bigint[], text[])') IS NOT NULL THEN
        DROP FUNCTION livewell.settle_jobs(bigint[], text[], text[], text[], float8[], bigint[], text[]);
        DROP FUNCTION livewell.charge_jobs(text[], text[], bigint[], text[], bigint[], bigint[], text[]);
        DROP FUNCTION livewell.limited_candidates(text, boolean, integer, bigint[]);
        DROP FUNCTION livewell.claim_limited(bigint, text, integer, boolean, text[], integer[]);
    END IF;
END
$drop$;
-- Contract 8: lanes, priorities and payloads are bounded by the table itself, whoever inserts (docs/adr/0015-checks-in-the-job-table.md).
-- One expression, its cheapest part first: Postgres prepares each CHECK anew in every statement and evaluates it at every claim. Text is at most six times the binary form, so small payloads are
-- never turned into text to be measured.
ALTER TABLE livewell.job ADD CONSTRAINT job_birth_check CHECK (
    lane BETWEEN 0 AND 1 AND priority BETWEEN -100 AND 100 AND (pg_column_size(payload) <= 40000 OR octet_length(payload::text) <= 262144)) NOT VALID;
-- Rows that older releases accepted are brought within the bounds: a claim updates the row, and one that the table refuses would stop every claim of its queue.
WITH large AS (
    DELETE FROM livewell.job WHERE pg_column_size(payload) > 40000 AND octet_length(payload::text) > 262144 RETURNING *
)
INSERT INTO livewell.dead_job (id, batch_id, created_at, died_at, attempt, max_attempts, lost, priority, lane, queue, kind, unique_key, group_key, call_key, reason, payload, error, trace, units)
SELECT id, batch_id, created_at, now(), attempt, max_attempts, lost, priority, lane, queue, kind, unique_key, group_key, call_key, 'payload', payload, 'the payload has more than 262144 bytes', trace, units
FROM large;
UPDATE livewell.job SET lane = least(greatest(lane, 0), 1), priority = least(greatest(priority, -100), 100)
WHERE lane NOT BETWEEN 0 AND 1 OR priority NOT BETWEEN -100 AND 100;
-- The table has live jobs only, and the statements above have just read them all.
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE livewell.job VALIDATE CONSTRAINT job_birth_check;

-- Q1: of the changes between live states, these are all that there are: delayed → ready; ready → running, held; held → ready, delayed; running → ready, delayed. Only the condition is evaluated per row.
DROP TRIGGER job_transition ON livewell.job;
CREATE TRIGGER job_transition AFTER UPDATE OF state, worker, fence ON livewell.job
    FOR EACH ROW WHEN (
        NEW.state = 'running' AND OLD.state <> 'ready' OR NEW.state = 'delayed' AND OLD.state = 'ready' OR NEW.state = 'held' AND OLD.state IN ('running', 'delayed')
    ) EXECUTE FUNCTION livewell.refuse_transition();
-- take_permits gets a parameter with a default: calls as before still fit, and there must not be two that do. A new database does not have it yet.
DO $drop$
BEGIN
    IF to_regprocedure('livewell.take_permits(bigint, bigint, bigint, integer)') IS NOT NULL THEN
        DROP FUNCTION livewell.take_permits(bigint, bigint, bigint, integer);
    END IF;
END
$drop$;

-- When numbers were last raised after a failover, in milliseconds since 1970: a promoted standby may have been started long before (functions/server_started.sql).
CREATE SEQUENCE livewell.promoted_seq AS bigint;
COMMENT ON SEQUENCE livewell.promoted_seq IS 'Its last value is when a failover was last noticed, in milliseconds since 1970.';
