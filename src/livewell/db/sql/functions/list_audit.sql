-- What operators did, the newest first.
--
-- Called by: processes before 0.8.0 (list_acts has followed). Index: audit_pkey. p_before: the id
--            that the page before ended with.
CREATE OR REPLACE FUNCTION livewell.list_audit(p_before bigint, p_limit integer)
RETURNS TABLE (
    id bigint, at timestamptz, actor text, login text, action text, subject text, arguments jsonb,
    answer text
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT a.id, a.at, a.actor, a.login, a.action, a.subject, a.arguments, a.answer
    FROM livewell.audit a
    WHERE a.id < coalesce(p_before, 9223372036854775807)
    ORDER BY a.id DESC LIMIT least(p_limit, 1000);
END
$$;
COMMENT ON FUNCTION livewell.list_audit IS 'A page of what operators did, the newest first.';
REVOKE ALL ON FUNCTION livewell.list_audit FROM PUBLIC;
