-- The steps of an export with one more; the last 64 stay.
--
-- Called by: begin_export, delete_export, end_export, fail_export, finish_export,
--            plan_export_file, step_export.
-- A step is [seq, progress, state, instant, attempt]: what a stream sends, and what a poll answers.
CREATE OR REPLACE FUNCTION livewell.next_export_steps(
    p_export livewell.export, p_progress integer, p_state text, p_at timestamptz, p_attempt integer
)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_steps pg_catalog.jsonb := p_export.steps;
BEGIN
    WHILE jsonb_array_length(v_steps) >= 64 LOOP
        v_steps := v_steps - 0;
    END LOOP;
    RETURN v_steps || jsonb_build_array(
        jsonb_build_array(p_export.seq + 1, p_progress, p_state, p_at, p_attempt));
END
$$;
COMMENT ON FUNCTION livewell.next_export_steps IS 'The last 64 steps of an export, this one included.';
REVOKE ALL ON FUNCTION livewell.next_export_steps FROM PUBLIC;
