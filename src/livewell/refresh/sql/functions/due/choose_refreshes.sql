-- Which of the keys that are due go now, in which order, lane and call; what cannot be served is
-- set aside.
--
-- Called by: dispatch_due, with the page of due_candidates and the room of dispatch_room.
-- Steps:     order_refreshes (the order, and why it is that), then each key in its turn: set aside,
--            left over, or into a call.
-- Index:     ledger_pkey for what is set aside.
-- Answer:    types, keys, lanes and calls in order; left_over: how many wanted to go and could not;
--            reason: budget, if that kept one back.
-- The planner settings of dispatch_due hold here too: to set them again takes 45 µs.
CREATE OR REPLACE FUNCTION livewell.choose_refreshes(
    p_upstream text, p_types text[], p_keys text[], p_dues timestamptz[], p_viewers integer[],
    p_wanted timestamptz[], p_calls integer, p_background_calls integer, p_units bigint,
    p_background_units bigint, p_stalled text[], p_now timestamptz)
RETURNS TABLE (
    types text[], keys text[], lanes integer[], calls integer[], left_over integer, reason text)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_variable
DECLARE
    v_by_call   boolean := coalesce((       -- the budget counts calls
        SELECT l.budget_unit = 'calls' FROM livewell.limiter l WHERE l.name = p_upstream), false);
    v_c         record;
    v_used      integer := 0;           -- calls so far
    v_units     bigint := 0;            -- of the budget, so far
    v_unit      bigint;
    v_open      text[] := '{}';         -- batch types with a call that is not full,
    v_call      integer[] := '{}';      -- its number,
    v_free      integer[] := '{}';      -- and its free places
    v_place     integer;
    v_set_types text[] := '{}';         -- cannot be served now
    v_set_keys  text[] := '{}';
    v_set_for   integer[] := '{}';      -- and for how many seconds
BEGIN
    types := '{}';
    keys := '{}';
    lanes := '{}';
    calls := '{}';
    left_over := 0;
    FOR v_c IN
        SELECT *
        FROM livewell.order_refreshes(
            p_upstream, p_types, p_keys, p_dues, p_viewers, p_wanted, p_stalled, p_now)
    LOOP
        IF NOT v_c.can OR v_c.stalled THEN
            v_set_types := v_set_types || v_c.name;
            v_set_keys := v_set_keys || v_c.key;
            v_set_for := v_set_for || (CASE WHEN v_c.can THEN 15 ELSE 300 END);
            CONTINUE;
        END IF;
        v_place := CASE WHEN v_c.keys_max > 1 THEN array_position(v_open, v_c.name || v_c.lane) END;
        v_unit := CASE WHEN NOT v_by_call THEN v_c.size WHEN v_free[v_place] > 0 THEN 0 ELSE 1 END;
        IF v_units + v_unit > (CASE v_c.lane WHEN 0 THEN p_units ELSE p_background_units END) THEN
            left_over := left_over + 1;
            reason := 'budget';
            CONTINUE;
        END IF;
        IF v_place IS NULL OR v_free[v_place] = 0 THEN
            IF v_used >= (CASE v_c.lane WHEN 0 THEN p_calls ELSE p_background_calls END) THEN
                left_over := left_over + 1;
                -- There is no call left, nor a place in one.
                EXIT WHEN v_c.lane = 1 OR NOT (0 < ANY (v_free));
                CONTINUE;
            END IF;
            v_used := v_used + 1;
            IF v_c.keys_max > 1 THEN
                v_place := coalesce(v_place, cardinality(v_open) + 1);
                v_open[v_place] := v_c.name || v_c.lane;
                v_call[v_place] := v_used;
                v_free[v_place] := v_c.keys_max;
            END IF;
        END IF;
        IF v_place IS NOT NULL THEN
            v_free[v_place] := v_free[v_place] - 1;
        END IF;
        v_units := v_units + v_unit;
        types := types || v_c.name;
        keys := keys || v_c.key;
        lanes := lanes || v_c.lane;
        calls := calls || coalesce(v_call[v_place], v_used);
    END LOOP;

    IF cardinality(v_set_keys) > 0 THEN
        UPDATE livewell.ledger l SET due_at = p_now + g.seconds * interval '1 second'
        FROM unnest(v_set_types, v_set_keys, v_set_for) AS g (name, key, seconds)
        WHERE l.data_type = g.name AND l.key = g.key AND l.ctid = ANY (ARRAY(
            SELECT s.ctid FROM unnest(v_set_types, v_set_keys) AS k (name, key)
            JOIN livewell.ledger s ON s.data_type = k.name AND s.key = k.key
            FOR NO KEY UPDATE OF s SKIP LOCKED));
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.choose_refreshes IS
    'Which due keys go now, by viewers and waiting, and in which lane and call; sets aside what '
    'cannot.';
REVOKE ALL ON FUNCTION livewell.choose_refreshes FROM PUBLIC;
