-- The state of an export now: a finished one expires by the clock, not by a cleaner (E7).
--
-- Called by: export_document, find_exports, read_export_file, read_export_files.
CREATE OR REPLACE FUNCTION livewell.export_verdict(
    p_state text, p_expires_at timestamptz, p_now timestamptz
)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $$
BEGIN
    RETURN CASE WHEN p_state = 'finished' AND p_expires_at <= p_now THEN 'expired' ELSE p_state END;
END
$$;
COMMENT ON FUNCTION livewell.export_verdict IS 'The state of an export, or expired.';
REVOKE ALL ON FUNCTION livewell.export_verdict FROM PUBLIC;
