-- The identities of a call: each in its normal form with the rule for its type, once, in the order
-- in which all callers write and lock them. Blocked ones are left out and named.
--
-- Called by: resolve_contact.
CREATE OR REPLACE FUNCTION livewell.ready_identities(
    p_tenant text, p_types text[], p_values text[],
    OUT o_ready livewell.given_identity[], OUT o_blocked text[]
)
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_bad   record;
BEGIN
    IF coalesce(cardinality(p_types), 0) NOT BETWEEN 1 AND 20
        OR cardinality(p_types) IS DISTINCT FROM cardinality(p_values) THEN
        RAISE EXCEPTION '% types and % values of identities: 1 to 20 of each are allowed, as many of both',
            coalesce(cardinality(p_types), 0), coalesce(cardinality(p_values), 0)
            USING ERRCODE = 'LW003';
    END IF;
    SELECT u.type, u.value INTO v_bad FROM unnest(p_types, p_values) u (type, value)
    WHERE u.type IS NULL OR u.value IS NULL OR octet_length(u.value) > 500
        OR u.type !~ '^[a-z][a-z0-9_]{0,30}(:[a-z0-9_.-]{1,60})?$' LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'identity of type "%" with % bytes: a type is like email or external_id:shop, a value has at most 500 bytes',
            left(v_bad.type, 100), coalesce(octet_length(v_bad.value), 0) USING ERRCODE = 'LW003';
    END IF;
    WITH given AS MATERIALIZED (
        SELECT DISTINCT ON (u.type COLLATE "C", n.value COLLATE "C")
            u.type, n.value, u.value AS original, r.strength, r.merges, r.max_per_contact,
            n.value = '' OR n.value = ANY (r.blocked)
                OR (split_part(u.type, ':', 1) = 'email'
                    AND regexp_replace(n.value, '@[^@]*$', '@') = ANY (r.blocked)) AS is_blocked
        FROM unnest(p_types, p_values) WITH ORDINALITY AS u (type, value, place)
        CROSS JOIN LATERAL livewell.identity_rule(p_tenant, u.type) r
        CROSS JOIN LATERAL livewell.normal_identity(u.type, u.value, r.fold_plus, r.fold_dots)
            AS n (value)
        ORDER BY u.type COLLATE "C", n.value COLLATE "C", u.place
    ), placed AS (
        SELECT g.*, row_number() OVER (ORDER BY g.type COLLATE "C", g.value COLLATE "C") AS place
        FROM given g WHERE NOT g.is_blocked
    )
    SELECT
        coalesce((SELECT array_agg(
            (p.place, p.type, p.value, p.original, p.strength, p.merges,
             p.max_per_contact)::livewell.given_identity ORDER BY p.place) FROM placed p), '{}'),
        coalesce((SELECT array_agg(g.type ORDER BY g.type COLLATE "C") FROM given g
            WHERE g.is_blocked), '{}')
    INTO o_ready, o_blocked;
END
$$;
COMMENT ON FUNCTION livewell.ready_identities IS
    'Identities of a call in normal form, with their rules, in the order in which they are locked.';
REVOKE ALL ON FUNCTION livewell.ready_identities FROM PUBLIC;
