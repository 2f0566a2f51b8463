-- Put keys into the universe of a scheduled type, or make them active again (R19). Answers how many
-- that were; keys that do not fit are refused, and then none is added.
--
-- Called by: `livewell types universe add` and import, the API; at most 10,000 keys a call.
CREATE OR REPLACE FUNCTION livewell.add_universe(p_type text, p_keys text[])
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_type      livewell.data_type := livewell.registered_type(p_type);
    v_bad       text;
    v_n         integer;
    v_now       timestamptz;
BEGIN
    IF cardinality(p_keys) > 10000 THEN
        RAISE EXCEPTION '% keys in one call: at most 10000 are allowed', cardinality(p_keys)
        USING ERRCODE = 'LW003';
    END IF;
    SELECT k
    INTO v_bad FROM unnest(p_keys) AS k
    WHERE livewell.key_fits(v_type.key_pattern, k) IS NOT TRUE LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'key "%" does not fit % of type %', left(v_bad, 60), v_type.key_pattern,
            p_type
        USING ERRCODE = 'LW003';
    END IF;
    v_now := livewell.now();
    INSERT INTO livewell.universe AS u (data_type, key, added_at)
    SELECT v_type.name, k, v_now FROM (SELECT DISTINCT unnest(p_keys) AS k) AS given
    ORDER BY k COLLATE "C"
    ON CONFLICT (data_type, key) DO UPDATE SET active = true WHERE NOT u.active;
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.add_universe IS 'Adds keys to what a scheduled type walks through.';
REVOKE ALL ON FUNCTION livewell.add_universe FROM PUBLIC;
