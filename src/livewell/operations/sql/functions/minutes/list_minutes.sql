-- Every one of the last minutes, the oldest first: its figures, or NULL if no worker kept any.
--
-- Called by: the dashboard.
-- Index:     state_minute_pkey.
-- newest:    the last minute that has figures, however long ago; the same in every row.
-- The minute that is not over has a row only if its figures are kept already: their absence says
-- nothing.
CREATE OR REPLACE FUNCTION livewell.list_minutes(p_minutes integer)
RETURNS TABLE (minute timestamptz, figures jsonb, newest timestamptz)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_this      timestamptz := date_trunc('minute', livewell.now());
    v_since     timestamptz := v_this - least(greatest(p_minutes, 1), 2880) * interval '1 minute';
    v_newest    timestamptz;
BEGIN
    SELECT m.minute INTO v_newest FROM livewell.state_minute m ORDER BY m.minute DESC LIMIT 1;
    RETURN QUERY
    WITH kept AS MATERIALIZED (
        SELECT m.minute, m.figures FROM livewell.state_minute m
        WHERE m.minute > v_since
        ORDER BY m.minute LIMIT 2881
    )
    SELECT g.minute, k.figures, v_newest
    FROM generate_series(v_since + interval '1 minute', v_this, interval '1 minute') AS g (minute)
    LEFT JOIN kept k ON k.minute = g.minute
    WHERE g.minute < v_this OR k.minute IS NOT NULL
    ORDER BY g.minute;
END
$$;
COMMENT ON FUNCTION livewell.list_minutes IS
    'The figures of each of so many last minutes; none where no worker kept any.';
REVOKE ALL ON FUNCTION livewell.list_minutes FROM PUBLIC;
