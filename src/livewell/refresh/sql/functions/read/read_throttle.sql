-- Why a key of this type cannot be refreshed now, whoever asks, and when it is worth asking again:
-- budget, breaker, upstream (it asked for silence), probe (one call is trying whether it is back).
--
-- Called by: refuse_demand, before a key is demanded; read_key, to say it. Both run as the owner.
-- A rate that is used up is no reason here: the key is served in its turn, within seconds. One row,
-- NULLs: nothing stands in the way. Index: as dispatch_room.
CREATE OR REPLACE FUNCTION livewell.read_throttle(
    p_upstream text, p_type text, p_stated bigint, p_now timestamptz)
RETURNS TABLE (reason text, retry_at timestamptz)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_room      record;
    v_by_call   boolean := coalesce(
        (SELECT l.budget_unit = 'calls' FROM livewell.limiter l WHERE l.name = p_upstream), false);
BEGIN
    SELECT * INTO v_room FROM livewell.dispatch_room(p_upstream, p_now, 1000);
    reason :=
        CASE
            WHEN v_room.units <
                CASE
                    WHEN v_by_call THEN 1
                    ELSE livewell.expected_size(p_upstream, p_type, p_stated)
                END
                THEN 'budget'
                   WHEN v_room.calls = 0
                       AND v_room.reason IN ('breaker', 'upstream', 'probe', 'budget')
                           THEN v_room.reason END;
    IF reason IS NOT NULL THEN
        retry_at := p_now + least(greatest(coalesce(v_room.wait_seconds, 5), 1), 31 * 86400)
            * interval '1 second';
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.read_throttle IS
    'Why a key of a type cannot be refreshed now, and when to ask again; NULLs if it can.';
REVOKE ALL ON FUNCTION livewell.read_throttle FROM PUBLIC;
