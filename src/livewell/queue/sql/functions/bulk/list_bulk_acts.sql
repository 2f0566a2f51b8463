-- Acts on many, the newest first; with p_id that one only.
--
-- Called by: clients. Index: bulk_act_pkey. p_before: the id that the page before ended with.
-- share:     how much of it is done. If all that match were counted (how is exact): of those.
--            Otherwise nobody knows how many there are, and it is the part of the ids that was
--            looked at. Only an act that is done has a share of 1.
CREATE OR REPLACE FUNCTION livewell.list_bulk_acts(p_id bigint, p_before bigint, p_limit integer)
RETURNS TABLE (
    id bigint, action text, filter jsonb, state text, expected bigint, how text, done bigint,
    skipped bigint, busy integer, share float8, asked_by text, asked_at timestamptz,
    before_at timestamptz, stepped_at timestamptz, rest_until timestamptz, ended_at timestamptz,
    broken_off integer, error text
)
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT b.id, b.action, b.filter, b.state, b.expected, b.how, b.done, b.skipped,
        cardinality(b.busy_ids),
        CASE
            WHEN b.state = 'done' THEN 1
            WHEN b.how = 'exact' THEN least(
                0.99,
                (b.done + b.skipped + cardinality(b.busy_ids)) / greatest(b.expected, 1)::float8
            )
            ELSE least(
                0.99,
                greatest(b.cursor_id - b.from_id + 1, 0)
                / greatest(b.up_to_id - b.from_id + 1, 1)::float8
            )
        END,
        b.asked_by, b.asked_at, b.before_at, b.stepped_at, b.rest_until, b.ended_at, b.broken_off,
        b.error
    FROM livewell.bulk_act b
    WHERE (p_id IS NULL OR b.id = p_id) AND b.id < coalesce(p_before, 9223372036854775807)
    ORDER BY b.id DESC LIMIT least(greatest(p_limit, 1), 1000)
$$;
COMMENT ON FUNCTION livewell.list_bulk_acts IS
    'A page of acts on many with their progress, the newest first.';
REVOKE ALL ON FUNCTION livewell.list_bulk_acts FROM PUBLIC;
