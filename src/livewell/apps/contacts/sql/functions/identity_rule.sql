-- What identities of a type may do in a tenant: its policy for the type, else for the part before
-- the colon, else the default.
--
-- Called by: find_contact, list_identity_policies, merge_refusal, put_identity, ready_identities,
--            set_identity_policy.
-- Index:     identity_policy_pkey
CREATE OR REPLACE FUNCTION livewell.identity_rule(p_tenant text, p_type text)
RETURNS livewell.identity_policy
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_kind  pg_catalog.text := split_part(p_type, ':', 1);
    v_rule  livewell.identity_policy;
BEGIN
    SELECT p.* INTO v_rule FROM livewell.identity_policy p
    WHERE p.tenant = p_tenant AND p.type IN (p_type, v_kind)
    ORDER BY p.type = p_type DESC LIMIT 1;
    IF FOUND THEN
        RETURN v_rule;
    END IF;
    v_rule.tenant := p_tenant;
    v_rule.type := v_kind;
    v_rule.merges := 'auto';
    v_rule.fold_plus := false;
    v_rule.fold_dots := false;
    v_rule.blocked := ARRAY['null', 'none', 'nil', 'undefined', 'unknown', 'anonymous', 'n/a', '-', '0'];
    CASE v_kind
        WHEN 'external_id' THEN
            v_rule.strength := 100;
            v_rule.max_per_contact := 1;
        WHEN 'email' THEN
            v_rule.strength := 50;
            v_rule.max_per_contact := 100;
            v_rule.blocked := v_rule.blocked || ARRAY['test@', 'noreply@', 'no-reply@', 'null@', 'none@'];
        ELSE
            v_rule.strength := 10;
            v_rule.max_per_contact := 100;
    END CASE;
    RETURN v_rule;
END
$$;
COMMENT ON FUNCTION livewell.identity_rule IS 'The policy of a tenant for identities of a type, or the default.';
REVOKE ALL ON FUNCTION livewell.identity_rule FROM PUBLIC;
