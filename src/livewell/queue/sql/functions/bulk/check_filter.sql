-- The filter of an act on many, as it is stored: known names only, no nulls, instants as such.
--
-- Called by: begin_bulk_act, count_matching.
-- Refuses what could not be meant, so that a misspelt name never means "everything".
CREATE OR REPLACE FUNCTION livewell.check_filter(p_action text, p_filter jsonb)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    c_live  CONSTANT text[] := '{queue,task,state,group,key,batch,since,until}';
    c_dead  CONSTANT text[] := '{queue,task,reason,group,key,batch,since,until}';
    v_filter jsonb := jsonb_strip_nulls(coalesce(p_filter, '{}'));
    v_name  text;
BEGIN
    IF p_action NOT IN ('cancel', 'hasten', 'redrive', 'discard') OR p_action IS NULL THEN
        RAISE EXCEPTION 'action %: allowed are cancel, hasten, redrive, discard', p_action
            USING ERRCODE = 'LW003';
    END IF;
    FOR v_name IN SELECT k FROM jsonb_object_keys(v_filter) AS k LOOP
        IF v_name <> ALL (CASE WHEN p_action IN ('cancel', 'hasten') THEN c_live ELSE c_dead END)
        THEN
            RAISE EXCEPTION 'filter %: % cannot be chosen by it', v_name, p_action
                USING ERRCODE = 'LW003';
        END IF;
    END LOOP;
    -- Only a delayed job can run sooner.
    IF p_action = 'hasten' THEN
        v_filter := v_filter || '{"state": "delayed"}';
    END IF;
    IF v_filter ->> 'state' NOT IN ('delayed', 'held', 'ready', 'running') THEN
        RAISE EXCEPTION 'state %: allowed are delayed, held, ready, running', v_filter ->> 'state'
            USING ERRCODE = 'LW003';
    END IF;
    RETURN v_filter;
END
$$;
COMMENT ON FUNCTION livewell.check_filter IS
    'The filter of an act on many in the form in which it is stored and compared.';
REVOKE ALL ON FUNCTION livewell.check_filter FROM PUBLIC;
