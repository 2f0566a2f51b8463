-- Lock the contacts that have these identities, by id, and see that they still have them.
--
-- Called by: settle_identities, after its identities are written.
-- Index:     contact_identity_pkey, contact_pkey
-- Why two statements: whoever held a lock may have merged its contact away. Then the identities
-- point to another contact by now, which only a new statement sees; LW030 lets the caller begin
-- again from its savepoint, which also gives back the locks: taking one more out of its order could
-- deadlock.
CREATE OR REPLACE FUNCTION livewell.lock_held(p_tenant text, p_ready livewell.given_identity[])
RETURNS uuid[]
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_locked    pg_catalog.uuid[];
    v_held      pg_catalog.uuid[];
    v_n         integer;
BEGIN
    v_locked := ARRAY(
        SELECT c.id FROM livewell.contact c
        WHERE c.tenant = p_tenant AND c.id IN (
            SELECT i.contact_id FROM unnest(p_ready) u
            JOIN livewell.contact_identity i
                ON i.tenant = p_tenant AND i.type = u.type AND i.value = u.value)
        ORDER BY c.id FOR UPDATE OF c
    );
    SELECT coalesce(array_agg(DISTINCT i.contact_id), '{}'), count(*) INTO v_held, v_n
    FROM unnest(p_ready) u
    JOIN livewell.contact_identity i
        ON i.tenant = p_tenant AND i.type = u.type AND i.value = u.value;
    IF v_n <> cardinality(p_ready) OR NOT v_held <@ v_locked THEN
        RAISE EXCEPTION 'contacts were merged while they were waited for' USING ERRCODE = 'LW030';
    END IF;
    RETURN v_held;
END
$$;
COMMENT ON FUNCTION livewell.lock_held IS 'Locks the contacts of identities by id; LW030 if they moved meanwhile.';
REVOKE ALL ON FUNCTION livewell.lock_held FROM PUBLIC;
