-- Why two contacts may not be merged by themselves: 'apart' if somebody keeps them apart, a sentence
-- if a limit per contact would be broken; NULL if they may.
--
-- Called by: join_contacts.
-- Index:     contact_conflict_pair_key, contact_identity_contact_idx
CREATE OR REPLACE FUNCTION livewell.merge_refusal(p_tenant text, p_one uuid, p_other uuid)
RETURNS text
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
BEGIN
    PERFORM FROM livewell.contact_conflict f
    WHERE f.tenant = p_tenant AND f.one_id = least(p_one, p_other)
        AND f.other_id = greatest(p_one, p_other) AND f.state = 'apart';
    IF FOUND THEN
        RETURN 'apart';
    END IF;
    RETURN (
        SELECT format('together they would have %s of type %s, and %s is the limit',
            s.n, s.type, r.max_per_contact)
        FROM (
            SELECT i.type, count(*) AS n FROM livewell.contact_identity i
            WHERE i.tenant = p_tenant AND i.contact_id IN (p_one, p_other)
            GROUP BY i.type HAVING count(DISTINCT i.contact_id) = 2
        ) s
        CROSS JOIN LATERAL livewell.identity_rule(p_tenant, s.type) r
        WHERE s.n > r.max_per_contact ORDER BY s.type LIMIT 1
    );
END
$$;
COMMENT ON FUNCTION livewell.merge_refusal IS 'Why two contacts may not be merged by themselves, or NULL.';
REVOKE ALL ON FUNCTION livewell.merge_refusal FROM PUBLIC;
