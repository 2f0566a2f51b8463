-- 0.6.0: limits that hold as the upstream counts, and breakers that no single key can move.
-- Never edited after release; changes are a new numbered file.

-- A call counts from its grant until its answer is booked, and one window more (docs/adr/0009-calls-count-until-answered.md).
ALTER TABLE livewell.limiter
    -- how long after it was made a call that is not answered may still reach the upstream
    ADD COLUMN deadline_seconds float8 NOT NULL DEFAULT 30 CONSTRAINT limiter_deadline_check CHECK (deadline_seconds > 0 AND deadline_seconds <= 3600);
CREATE TABLE livewell.limiter_flight (
    limiter         text COLLATE "C" NOT NULL,
    credential      text COLLATE "C" NOT NULL,
    fence           bigint      NOT NULL,           -- of the first job of the call; the calls of one job have the same
    calls           integer     NOT NULL,
    at              timestamptz NOT NULL            -- the last instant at which it can reach the upstream: granted + permit + deadline
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE livewell.limiter_flight IS 'Calls that were granted and whose end is not booked yet. Each counts against the rate.';
CREATE INDEX limiter_flight_idx ON livewell.limiter_flight (limiter, credential, fence);
COMMENT ON TABLE livewell.limiter_grant IS 'Calls that have ended, at the instant by which they had surely reached the upstream: with those in flight they are what the rate compares with.';
-- Until now it held the instant of the grant. Nobody knows which of these calls were answered.
UPDATE livewell.limiter_grant g SET at = g.at + (l.permit_seconds + l.deadline_seconds) * interval '1 second' FROM livewell.limiter l WHERE l.name = g.limiter;
-- It gets a parameter with a default: calls as before still fit, and there must not be two that do. A new database does not have it yet.
DO $drop$
BEGIN
    IF to_regprocedure('livewell.grant_calls(livewell.limiter, text, timestamptz, integer, bigint)') IS NOT NULL THEN
        DROP FUNCTION livewell.grant_calls(livewell.limiter, text, timestamptz, integer, bigint);
    END IF;
END
$drop$;

-- Breakers that no single key can move (R13, X10), and silences that are believed only up to a bound.
ALTER TABLE livewell.limiter
    -- a longer Retry-After is not believed: after so long one call asks again
    ADD COLUMN quiet_seconds_max float8 NOT NULL DEFAULT 900 CONSTRAINT limiter_quiet_check CHECK (quiet_seconds_max BETWEEN 1 AND 86400);
ALTER TABLE livewell.limiter_credential
    ADD COLUMN quiet_since          timestamptz,        -- when the silence began that lasts until quiet_until
    ADD COLUMN quiet_asked_seconds  float8,             -- how long the upstream asked for, however long it is believed
    ADD COLUMN opened_at            timestamptz,        -- when the breaker left closed; NULL while it is closed
    ADD COLUMN opened_reason        text COLLATE "C",   -- and why: the failure that was one too many
    ADD COLUMN opened_keys          integer,            -- and how many different keys had failed by then
    ADD COLUMN failing_until        timestamptz,        -- until then no key that is failing may be the probe
    ADD COLUMN free_at              timestamptz;        -- when calls last became possible again: closed, or another probe may go
-- Failures that are not about a key: no connection, no credential.
ALTER TABLE livewell.limiter_calls ADD COLUMN keyless integer NOT NULL DEFAULT 0;

-- A key is the group key of a job, or else its unique key, or else the job itself.
CREATE TABLE livewell.limiter_failing (
    limiter         text COLLATE "C" NOT NULL REFERENCES livewell.limiter ON DELETE CASCADE,
    key             text COLLATE "C" NOT NULL,
    credential      text COLLATE "C" NOT NULL,
    turned_at       timestamptz NOT NULL,           -- when it last turned from good to failing
    failed_at       timestamptz NOT NULL,
    failures        integer     NOT NULL,           -- in a row; 0: good again, and kept while the breaker's window remembers it
    counted         boolean     NOT NULL,           -- it had data: a key that never had says nothing about the upstream
    CONSTRAINT limiter_failing_pkey PRIMARY KEY (limiter, key, credential)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE livewell.limiter_failing IS 'Keys whose last call failed: each counts once to the breaker, and none of them is its probe while there is another.';
CREATE INDEX limiter_failing_turned_idx ON livewell.limiter_failing (limiter, credential, turned_at) WHERE counted;
CREATE INDEX limiter_failing_failed_idx ON livewell.limiter_failing (failed_at);

-- book_calls too gets parameters with defaults.
DO $drop$
BEGIN
    IF to_regprocedure('livewell.book_calls(text, text, bigint[], text[], bigint)') IS NOT NULL THEN
        DROP FUNCTION livewell.book_calls(text, text, bigint[], text[], bigint);
    END IF;
END
$drop$;
