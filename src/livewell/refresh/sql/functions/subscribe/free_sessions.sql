-- These sessions of strangers are no more: count them off their public keys and addresses.
--
-- Called by: take_session, close_session and sweep_sessions. p_origins: one for each session, as
--            viewer_session has it; NULLs are users' and count for nothing.
-- Locks: after sessions and viewers; in the order of their names.
CREATE OR REPLACE FUNCTION livewell.free_sessions(p_origins text[])
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_names     pg_catalog.text[];
    v_counts    pg_catalog.int4[];
BEGIN
    SELECT array_agg(g.name), array_agg(g.n) INTO v_names, v_counts FROM (
        SELECT n AS "name", count(*) AS n FROM unnest(p_origins) AS o
        CROSS JOIN LATERAL unnest(ARRAY[split_part(o, ' ', 1), o]) AS n
        WHERE o IS NOT NULL GROUP BY n) g;
    IF v_names IS NULL THEN
        RETURN;
    END IF;
    PERFORM FROM livewell.session_share h
    WHERE h.name = ANY (v_names) ORDER BY h.name FOR NO KEY UPDATE;
    UPDATE livewell.session_share h SET sessions = greatest(h.sessions - g.n, 0)
    FROM unnest(v_names, v_counts) AS g ("name", n)
    WHERE h.name = g.name;
END
$$;
COMMENT ON FUNCTION livewell.free_sessions IS
    'Counts sessions that ended off what their public keys and addresses have.';
REVOKE ALL ON FUNCTION livewell.free_sessions FROM PUBLIC;
