-- What identities may do in a tenant: its own policies, and the defaults for the usual types.
--
-- Called by: Contacts.policies, GET /v1/contacts/policies.
-- Index:     identity_policy_pkey
-- Why SECURITY DEFINER: as resolve_contact.
CREATE OR REPLACE FUNCTION livewell.list_identity_policies(p_tenant text)
RETURNS TABLE (
    type text, strength integer, max_per_contact integer, merges text, blocked text[],
    fold_plus boolean, fold_dots boolean, changed_at timestamptz
)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = ''
AS $$
#variable_conflict use_column
BEGIN
    PERFORM livewell.enter_tenant(p_tenant);
    RETURN QUERY
    SELECT t.type, r.strength, r.max_per_contact, r.merges, r.blocked, r.fold_plus, r.fold_dots,
        r.changed_at
    FROM (
        SELECT u.type FROM unnest(ARRAY['external_id', 'email', 'other']) u (type)
        UNION
        (SELECT p.type FROM livewell.identity_policy p
         WHERE p.tenant = p_tenant ORDER BY p.type LIMIT 1000)
    ) t
    CROSS JOIN LATERAL livewell.identity_rule(p_tenant, t.type) r
    ORDER BY r.strength DESC, t.type;
END
$$;
COMMENT ON FUNCTION livewell.list_identity_policies IS 'The policies of a tenant, and the defaults.';
REVOKE ALL ON FUNCTION livewell.list_identity_policies FROM PUBLIC;
