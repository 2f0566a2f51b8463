-- Acts on many, the newest first; with p_id that one only.
--
-- Called by: clients. Index: bulk_act_pkey. p_before: the id that the page before ended with.
CREATE OR REPLACE FUNCTION livewell.list_bulk_acts(p_id bigint, p_before bigint, p_limit integer)
RETURNS TABLE (
    id bigint, action text, filter jsonb, state text, expected bigint, done bigint, skipped bigint,
    busy integer, share float8, asked_by text, asked_at timestamptz, before_at timestamptz,
    stepped_at timestamptz, ended_at timestamptz, error text
)
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT b.id, b.action, b.filter, b.state, b.expected, b.done, b.skipped,
        cardinality(b.busy_ids),
        CASE
            WHEN b.state = 'done' OR b.up_to_id = 0 THEN 1
            ELSE least(
                1, (b.done + b.skipped + cardinality(b.busy_ids)) / greatest(b.expected, 1)::float8
            )
        END,
        b.asked_by, b.asked_at, b.before_at, b.stepped_at, b.ended_at, b.error
    FROM livewell.bulk_act b
    WHERE (p_id IS NULL OR b.id = p_id) AND b.id < coalesce(p_before, 9223372036854775807)
    ORDER BY b.id DESC LIMIT least(greatest(p_limit, 1), 1000)
$$;
COMMENT ON FUNCTION livewell.list_bulk_acts IS
    'A page of acts on many with their progress, the newest first.';
REVOKE ALL ON FUNCTION livewell.list_bulk_acts FROM PUBLIC;
