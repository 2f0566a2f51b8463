-- A page of dead letters by id; keyset, never OFFSET.
--
-- Called by: CLI `dead list`, clients.
CREATE OR REPLACE FUNCTION livewell.list_dead(
    p_queue text, p_kind text, p_after bigint, p_limit integer
)
RETURNS TABLE (
    id bigint, queue text, kind text, reason text, attempt smallint, lost smallint,
    died_at timestamptz, error text
)
LANGUAGE sql
SET search_path = ''
AS $$
    SELECT d.id, d.queue, d.kind, d.reason, d.attempt, d.lost, d.died_at, d.error
    FROM livewell.dead_job d
    WHERE d.id > coalesce(p_after, 0)
        AND (p_queue IS NULL OR d.queue = p_queue)
        AND (p_kind IS NULL OR d.kind = p_kind)
    ORDER BY d.id LIMIT least(greatest(p_limit, 1), 1000)
$$;
COMMENT ON FUNCTION livewell.list_dead IS 'A page of dead letters after a given id.';
REVOKE ALL ON FUNCTION livewell.list_dead FROM PUBLIC;
