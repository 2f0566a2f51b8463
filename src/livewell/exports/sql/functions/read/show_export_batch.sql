-- One batch of a user, if anything of it has changed after a number; NULL if there is none.
--
-- Called by: Exports.show_batch, GET /v1/exports/batch/{id}, follow_exports.
-- seq is the sum over its exports: it grows with each of their steps and needs no write of its own.
-- progress is their mean, rounded down; of those that have ended without a file it counts as 100,
-- so that a batch that is over says 100.
-- Index:     export_member_pkey, export_pkey
-- Why SECURITY DEFINER: as request_exports.
CREATE OR REPLACE FUNCTION livewell.show_export_batch(
    p_user text, p_id uuid, p_after bigint DEFAULT 0
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now   pg_catalog.timestamptz := livewell.now();
    v_batch livewell.export_batch;
    v_found pg_catalog.jsonb;
BEGIN
    PERFORM livewell.enter_export_user(p_user);
    SELECT b.* INTO v_batch FROM livewell.export_batch b WHERE b.id = p_id AND b.user_id = p_user;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF v_batch.ended_at IS NULL THEN
        PERFORM livewell.settle_lost_exports(p_user);
    END IF;
    SELECT jsonb_build_object(
        'id', p_id, 'created_at', v_batch.created_at, 'seq', coalesce(sum(e.seq), 0),
        'total', count(*),
        'finished', count(*) FILTER (WHERE e.state = 'finished' AND e.expires_at > v_now),
        'failed', count(*) FILTER (WHERE e.state = 'failed'),
        'cancelled', count(*) FILTER (WHERE e.state = 'cancelled'),
        'gone', count(*) FILTER (
            WHERE e.state = 'deleted' OR e.state = 'finished' AND e.expires_at <= v_now),
        'open', count(*) FILTER (WHERE e.state IN ('waiting', 'running')),
        'progress', coalesce(floor(avg(
            CASE WHEN e.state IN ('waiting', 'running') THEN e.progress ELSE 100 END)), 0)::integer,
        'exports', coalesce(
            jsonb_agg(livewell.export_document(e, v_now) ORDER BY m.place), '[]'))
    INTO v_found
    FROM livewell.export_member m
    JOIN livewell.export e ON e.id = m.export_id
    WHERE m.batch_id = p_id;
    SELECT b.ended_at INTO v_batch.ended_at FROM livewell.export_batch b WHERE b.id = p_id;
    RETURN v_found || jsonb_build_object(
        'ended_at', v_batch.ended_at, 'changed', (v_found ->> 'seq')::bigint > p_after,
        'state', CASE WHEN (v_found ->> 'open')::integer > 0 THEN 'running' ELSE 'ended' END,
        'complete', (v_found ->> 'finished')::integer = (v_found ->> 'total')::integer);
END
$$;
COMMENT ON FUNCTION livewell.show_export_batch IS 'How far a batch of exports is, with each of them.';
REVOKE ALL ON FUNCTION livewell.show_export_batch FROM PUBLIC;
