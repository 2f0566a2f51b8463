-- Say what identities of a type may do in a tenant; what is NULL stays as it is. Answers the policy.
--
-- Called by: Contacts.set_policy, PUT /v1/contacts/policies/TYPE.
-- Folding changes the normal form, and what is stored would not be found any more: it is refused once
-- the tenant has identities of the type.
-- Why SECURITY DEFINER: as resolve_contact.
CREATE OR REPLACE FUNCTION livewell.set_identity_policy(
    p_tenant text, p_type text, p_strength integer DEFAULT NULL, p_max integer DEFAULT NULL,
    p_merges text DEFAULT NULL, p_blocked text[] DEFAULT NULL,
    p_fold_plus boolean DEFAULT NULL, p_fold_dots boolean DEFAULT NULL
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_now   pg_catalog.timestamptz := livewell.now();
    v_rule  livewell.identity_policy;
BEGIN
    PERFORM livewell.enter_tenant(p_tenant);
    IF p_type IS NULL OR p_type !~ '^[a-z][a-z0-9_]{0,30}(:[a-z0-9_.-]{1,60})?$' THEN
        RAISE EXCEPTION 'type "%" of identities: write one like email or external_id:shop', left(p_type, 100)
            USING ERRCODE = 'LW003';
    ELSIF p_strength NOT BETWEEN 0 AND 1000 OR p_max NOT BETWEEN 1 AND 10000
        OR p_merges NOT IN ('auto', 'ask', 'never') OR cardinality(p_blocked) > 1000
        OR EXISTS (SELECT FROM unnest(p_blocked) b (value) WHERE octet_length(b.value) > 500) THEN
        RAISE EXCEPTION 'policy of %: strength 0 to 1000, limit 1 to 10000, merges auto, ask or never, at most 1000 blocked values',
            p_type USING ERRCODE = 'LW003';
    END IF;
    v_rule := livewell.identity_rule(p_tenant, p_type);
    IF (p_fold_plus <> v_rule.fold_plus OR p_fold_dots <> v_rule.fold_dots) AND EXISTS (
        SELECT FROM livewell.contact_identity i
        WHERE i.tenant = p_tenant AND (i.type = p_type OR i.type LIKE p_type || ':%')) THEN
        RAISE EXCEPTION 'policy of %: folding cannot be changed once there are identities of this type', p_type
            USING ERRCODE = 'LW003';
    END IF;
    INSERT INTO livewell.identity_policy AS p
        (tenant, type, strength, max_per_contact, merges, blocked, fold_plus, fold_dots, changed_at)
    VALUES (p_tenant, p_type, coalesce(p_strength, v_rule.strength),
        coalesce(p_max, v_rule.max_per_contact), coalesce(p_merges, v_rule.merges),
        coalesce(p_blocked, v_rule.blocked), coalesce(p_fold_plus, v_rule.fold_plus),
        coalesce(p_fold_dots, v_rule.fold_dots), v_now)
    ON CONFLICT (tenant, type) DO UPDATE
    SET strength = excluded.strength, max_per_contact = excluded.max_per_contact,
        merges = excluded.merges, blocked = excluded.blocked, fold_plus = excluded.fold_plus,
        fold_dots = excluded.fold_dots, changed_at = excluded.changed_at
    RETURNING p.* INTO v_rule;
    RETURN to_jsonb(v_rule) - 'tenant';
END
$$;
COMMENT ON FUNCTION livewell.set_identity_policy IS 'Sets what identities of a type may do in a tenant.';
REVOKE ALL ON FUNCTION livewell.set_identity_policy FROM PUBLIC;
