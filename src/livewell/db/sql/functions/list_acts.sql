-- What operators did, the newest first, by actor, action, subject and time.
--
-- Called by: `livewell audit list`, GET /v1/audit, the page /audit. p_before: the id that the page
--            before ended with. p_action: one (queues.pause), or all of a kind (queues).
-- Index:     audit_subject_idx, audit_actor_idx, audit_action_idx: of the first of these filters that
--            is given; audit_pkey without one. audit_at_idx finds the ids of p_since and p_until.
--            Names: api_key_pkey, audit_subject_idx, for each line that is answered.
-- Bounded:   20,000 rows are looked at. If that ends the look before the page is full, one more row
--            has the id where the next look begins and nothing else.
-- actor_name, subject_name: the names of the keys that acted and were acted on. A login has that of
--            its link, which says who made it. Who may not read keys, and of keys that are deleted,
--            is told what the line of their making says; NULL if that is gone too.
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
    arguments jsonb, answer text, before jsonb, after jsonb, n bigint, actor_name text,
    subject_name text
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
    v_name      text := 'SELECT m.arguments ->> ''name'' FROM livewell.audit m'
        ' WHERE m.subject = f.%1$s AND m.action IN (''keys.create'', ''logins.begin'', ''logins.link'')'
        ' ORDER BY m.id DESC LIMIT 1';
BEGIN
    IF has_column_privilege(to_regclass('livewell.api_key'), 'name', 'SELECT') THEN
        v_name := 'coalesce((SELECT k.name FROM livewell.api_key k WHERE k.id = f.%1$s), ('
            || v_name || '))';
    ELSE
        v_name := '(' || v_name || ')';
    END IF;
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
            f.before, f.after, f.n, CASE WHEN f.acting IS NOT NULL THEN %s END,
            CASE WHEN f.acted_on IS NOT NULL THEN %s END
        FROM (
            SELECT o.*, CASE WHEN o.actor LIKE 'key:%%' THEN substr(o.actor, 5) END AS acting,
                CASE WHEN o.action LIKE 'keys.%%' OR o.action LIKE 'logins.%%'
                    THEN o.subject END AS acted_on
            FROM found o
        ) f
        UNION ALL
        SELECT min(l.id), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
            NULL
        FROM looked l
        HAVING count(*) = $10 AND (SELECT count(*) FROM found) < $9
        ORDER BY 1 DESC
        $look$,
        v_by, format(v_name, 'acting'), format(v_name, 'acted_on')
    )
    USING v_below, coalesce(v_above, 0), p_actor, v_from, p_subject, p_since, p_until, v_to,
        v_limit, c_looked;
END
$$;
COMMENT ON FUNCTION livewell.list_acts IS
    'A page of what operators did, the newest first, by actor, action, subject and time.';
REVOKE ALL ON FUNCTION livewell.list_acts FROM PUBLIC;
