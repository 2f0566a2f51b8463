-- What an INSERT into the view livewell.contact_identities does: the identity in its normal form, and
-- its contact if there is none of that id yet. What somebody has already is a duplicate key.
--
-- Called by: trigger put_identity. For imports by the owner; programs call resolve_contact.
-- It merges nothing and decides nothing: what resolve_contact would ask somebody about is an error.
CREATE OR REPLACE FUNCTION livewell.put_identity()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   pg_catalog.timestamptz := livewell.now();
    v_rule  livewell.identity_policy;
    v_value pg_catalog.text;
    v_home  pg_catalog.uuid;
BEGIN
    PERFORM livewell.enter_tenant(NEW.tenant_id);
    v_rule := livewell.identity_rule(NEW.tenant_id, NEW.type);
    v_value := livewell.normal_identity(NEW.type, NEW.value, v_rule.fold_plus, v_rule.fold_dots);
    IF v_value = '' OR v_value = ANY (v_rule.blocked)
        OR (split_part(NEW.type, ':', 1) = 'email'
            AND regexp_replace(v_value, '@[^@]*$', '@') = ANY (v_rule.blocked)) THEN
        RAISE EXCEPTION 'an identity of type % has a blocked value', NEW.type USING ERRCODE = 'LW003';
    END IF;
    PERFORM FROM livewell.contact_tombstone t WHERE t.tenant = NEW.tenant_id
        AND t.hash = livewell.identity_hash(NEW.tenant_id, NEW.type, v_value);
    IF FOUND THEN
        RAISE EXCEPTION 'an identity of type % is of a person who was erased', NEW.type
            USING ERRCODE = 'LW003';
    END IF;
    v_home := coalesce(livewell.current_contact(NEW.tenant_id, NEW.contact_id), NEW.contact_id);
    INSERT INTO livewell.contact (tenant, id, created_at) VALUES (NEW.tenant_id, v_home, v_now)
    ON CONFLICT DO NOTHING;
    IF FOUND THEN
        PERFORM livewell.tell_contact(NEW.tenant_id, 'contact.created', v_home, '{}');
    END IF;
    INSERT INTO livewell.contact_identity (tenant, type, value, contact_id, added_at, original)
    VALUES (NEW.tenant_id, NEW.type, v_value, v_home, v_now, NEW.value);
    PERFORM livewell.tell_contact(NEW.tenant_id, 'identity.added', v_home,
        jsonb_build_object('type', NEW.type, 'value', v_value));
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION livewell.put_identity IS 'Writes an identity that is inserted into the view contact_identities.';
REVOKE ALL ON FUNCTION livewell.put_identity FROM PUBLIC;
