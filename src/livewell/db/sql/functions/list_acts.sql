-- What operators did, the newest first, by actor, action, subject and time.
--
-- Called by: `livewell audit list`, GET /v1/audit, the page /audit. p_before: the id that the page
--            before ended with. p_action: one (queues.pause), or all of a kind (queues).
-- Index:     audit_subject_idx, audit_actor_idx, audit_action_idx: of the first of these filters that
--            is given; audit_pkey without one. audit_at_idx finds the ids of p_since and p_until.
-- Bounded:   20,000 rows are looked at. If that ends the look before the page is full, one more row
--            has the id where the next look begins and nothing else.
-- Why a minute: an id and its instant are taken within one call of audit_act, so a row that is a
-- minute too late or too early has an id beyond all that are wanted.
CREATE OR REPLACE FUNCTION livewell.list_acts(
    p_before bigint,
    p_limit integer,
    p_actor text,
    p_action text,
    p_subject text,
    p_since timestamptz,
    p_until timestamptz
)
RETURNS TABLE (
    id bigint, at timestamptz, actor text, origin text, login text, action text, subject text,
    arguments jsonb, answer text, before jsonb, after jsonb, n bigint
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    c_looked    CONSTANT integer := 20000;
    v_limit     integer := greatest(least(p_limit, 1000), 1);
    v_below     bigint := coalesce(p_before, 9223372036854775807);
    v_above     bigint := 0;
    v_later     bigint;
    v_from      text := p_action || CASE WHEN p_action ~ '\.' THEN '' ELSE '.' END;
    v_to        text := p_action || CASE WHEN p_action ~ '\.' THEN chr(1) ELSE '/' END;
    v_by        text := CASE
        WHEN p_subject IS NOT NULL THEN 'a.subject = $5'
        WHEN p_actor IS NOT NULL THEN 'a.actor = $3'
        WHEN p_action IS NOT NULL THEN 'a.action >= $4 AND a.action < $8'
        ELSE 'true' END;
BEGIN
    IF p_until IS NOT NULL THEN
        SELECT a.id INTO v_later FROM livewell.audit a
        WHERE a.at > p_until + interval '1 minute'
        ORDER BY a.at LIMIT 1;
        v_below := least(v_below, v_later);
    END IF;
    IF p_since IS NOT NULL THEN
        SELECT a.id INTO v_above FROM livewell.audit a
        WHERE a.at < p_since - interval '1 minute'
        ORDER BY a.at DESC LIMIT 1;
    END IF;
    RETURN QUERY EXECUTE format(
        $look$
        WITH looked AS MATERIALIZED (
            SELECT * FROM livewell.audit a
            WHERE %s AND a.id < $1 AND a.id > $2
            ORDER BY a.id DESC LIMIT $10
        ), found AS (
            SELECT * FROM looked a
            WHERE ($3 IS NULL OR a.actor = $3)
                AND ($4 IS NULL OR a.action >= $4 AND a.action < $8)
                AND ($5 IS NULL OR a.subject = $5)
                AND ($6 IS NULL OR a.at >= $6)
                AND ($7 IS NULL OR a.at < $7)
            ORDER BY a.id DESC LIMIT $9
        )
        SELECT f.id, f.at, f.actor, f.origin, f.login, f.action, f.subject, f.arguments, f.answer,
            f.before, f.after, f.n
        FROM found f
        UNION ALL
        SELECT min(l.id), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
        FROM looked l
        HAVING count(*) = $10 AND (SELECT count(*) FROM found) < $9
        ORDER BY 1 DESC
        $look$,
        v_by
    )
    USING v_below, coalesce(v_above, 0), p_actor, v_from, p_subject, p_since, p_until, v_to,
        v_limit, c_looked;
END
$$;
COMMENT ON FUNCTION livewell.list_acts IS
    'A page of what operators did, the newest first, by actor, action, subject and time.';
REVOKE ALL ON FUNCTION livewell.list_acts FROM PUBLIC;
