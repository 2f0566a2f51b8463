-- From where logins of browsers began, and links were made: what the audit has of each.
--
-- Called by: servers, for the page /access. p_ids: of list_logins, so a thousand at most.
-- Index:     audit_subject_idx
-- A login whose line is older than the audit is kept has no row here.
CREATE OR REPLACE FUNCTION livewell.list_login_origins(p_ids text[])
RETURNS TABLE (id text, origin text)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT i.id, a.origin
    FROM (SELECT DISTINCT u.id FROM unnest(p_ids) AS u (id) LIMIT 1000) i
    CROSS JOIN LATERAL (
        SELECT o.origin FROM livewell.audit o
        WHERE o.subject = i.id AND o.action = 'logins.begin'
        ORDER BY o.id DESC LIMIT 1
    ) a;
END
$$;
COMMENT ON FUNCTION livewell.list_login_origins IS
    'From where each of these logins began, as the audit has it.';
REVOKE ALL ON FUNCTION livewell.list_login_origins FROM PUBLIC;
