-- How far a batch is.
--
-- Called by: clients, CLI `jobs batch`.
-- Index:     job_batch_idx, for a batch that is not sealed yet.
CREATE OR REPLACE FUNCTION livewell.show_batch(p_id bigint)
RETURNS TABLE (
    id bigint, state text, total bigint, remaining bigint, succeeded bigint, failed bigint,
    cancelled bigint, created_at timestamptz, sealed_at timestamptz, ended_at timestamptz,
    follow_id bigint
)
LANGUAGE sql
SET search_path = ''
SET enable_seqscan = off
AS $$
    SELECT b.id,
        CASE
            WHEN b.sealed_at IS NULL THEN 'open'
            WHEN b.remaining > 0 THEN 'running'
            WHEN b.ended_at IS NULL THEN 'failed'
            ELSE 'ended'
        END,
        l.n + b.succeeded + b.failed + b.cancelled, l.n, b.succeeded, b.failed, b.cancelled,
        b.created_at, b.sealed_at, b.ended_at, b.follow_id
    FROM livewell.batch b
    CROSS JOIN LATERAL (
        SELECT coalesce(
            b.remaining, (SELECT count(*) FROM livewell.job j WHERE j.batch_id = b.id)
        ) AS n
    ) l
    WHERE b.id = p_id
$$;
COMMENT ON FUNCTION livewell.show_batch IS
    'One batch: open, running, failed (its follow-up waits for a redrive) or ended, with counts.';
REVOKE ALL ON FUNCTION livewell.show_batch FROM PUBLIC;
