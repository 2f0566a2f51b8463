-- Park the keys of a page that nobody watches, at most 1,000; a prefetched key stays awake for a
-- day after somebody wanted it.
--
-- Called by: dispatch_due. park_keys locks, counts again and parks. Index: data_type_pkey.
-- The planner settings of dispatch_due hold here too: to set them again takes 45 µs.
CREATE OR REPLACE FUNCTION livewell.park_unwatched(
    p_types text[], p_keys text[], p_viewers integer[], p_wanted timestamptz[], p_now timestamptz)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_parked integer;
BEGIN
    SELECT livewell.park_keys(array_agg(g.name), array_agg(g.key), p_now) INTO v_parked FROM (
        SELECT g.name, g.key
        FROM unnest(p_types, p_keys, p_viewers, p_wanted) AS g (name, key, viewers, wanted_at)
        LEFT JOIN livewell.data_type t ON t.name = g.name
        WHERE g.viewers = 0
          AND NOT (coalesce(t.prefetch, false)
                   AND coalesce(g.wanted_at > p_now - interval '1 day', false))
        LIMIT 1000) g
    HAVING count(*) > 0;
    RETURN coalesce(v_parked, 0);
END
$$;
COMMENT ON FUNCTION livewell.park_unwatched IS
    'Parks those keys of a page that nobody watches; answers how many.';
REVOKE ALL ON FUNCTION livewell.park_unwatched FROM PUBLIC;
