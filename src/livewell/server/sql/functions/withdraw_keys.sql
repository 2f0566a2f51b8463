-- Revoke keys, login links and logins for an administrator who is known by a key or login of their
-- own. Answers how many there were that could still be used; NULL: the one who asks has no usable
-- key with the scope admin.
--
-- Called by: servers, for the page /access: one key, one login, or all logins with the links that
--            are not used yet. p_caller, p_caller_hash: id and hash of the secret of the key or
--            login that asks. p_ids: at most 1,000. p_all: they are all logins, for the audit.
-- Index:     api_key_pkey.
-- Why SECURITY DEFINER: nobody but the owner writes keys. The role alone is not enough to revoke one:
-- the function finds the key that asks and compares its secret. It can do nothing but revoke.
-- Why a loop: row security shows one key at a time.
CREATE OR REPLACE FUNCTION livewell.withdraw_keys(
    p_caller text, p_caller_hash bytea, p_ids text[], p_all boolean
)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_now       pg_catalog.timestamptz;
    v_caller    livewell.api_key;
    v_id        pg_catalog.text;
    v_kind      pg_catalog.text;
    v_kinds     pg_catalog.text[] := '{}';
    v_n         pg_catalog.int4 := 0;
BEGIN
    IF pg_catalog.cardinality(p_ids) > 1000 THEN
        RAISE EXCEPTION 'at most 1,000 keys a call are allowed' USING ERRCODE = 'LW003';
    END IF;
    PERFORM pg_catalog.set_config('livewell.user_id', 'key:' || p_caller, true);
    SELECT * INTO v_caller FROM livewell.api_key k WHERE k.id = p_caller;
    v_now := livewell.now();
    IF v_caller.id IS NULL
        OR v_caller.secret_hash <> p_caller_hash
        OR p_caller_hash IS NULL
        OR v_caller.kind = 'link'
        OR v_caller.revoked_at IS NOT NULL
        OR v_caller.expires_at <= v_now
        OR v_caller.types IS NOT NULL
        OR NOT 'admin' = ANY (v_caller.scopes)
    THEN
        RETURN NULL;
    END IF;
    FOR v_id IN SELECT DISTINCT i.id FROM pg_catalog.unnest(p_ids) AS i (id) ORDER BY 1 LOOP
        PERFORM pg_catalog.set_config('livewell.user_id', 'key:' || v_id, true);
        SELECT k.kind INTO v_kind FROM livewell.api_key k WHERE k.id = v_id;
        CONTINUE WHEN NOT FOUND;
        v_kinds := v_kinds || v_kind;
        UPDATE livewell.api_key k SET revoked_at = v_now
        WHERE k.id = v_id
            AND k.revoked_at IS NULL
            AND (k.expires_at IS NULL OR k.expires_at > v_now);
        IF FOUND THEN
            v_n := v_n + 1;
        END IF;
    END LOOP;
    PERFORM livewell.audit_act(
        'key:' || p_caller, NULL,
        CASE
            WHEN p_all THEN 'logins.end_all'
            WHEN 'key' = ANY (v_kinds) OR v_kinds = '{}' THEN 'keys.revoke'
            ELSE 'logins.end' END,
        CASE WHEN p_all THEN 'all logins' ELSE pg_catalog.array_to_string(p_ids, ', ') END,
        '{}', CASE WHEN v_n > 0 THEN 'revoked' ELSE 'was_revoked' END,
        CASE WHEN v_n > 0 THEN '{"revoked": false}'::pg_catalog.jsonb END,
        CASE WHEN v_n > 0 THEN '{"revoked": true}'::pg_catalog.jsonb END, v_n
    );
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.withdraw_keys IS
    'Revokes keys, login links and logins for an administrator; answers how many; audited.';
REVOKE ALL ON FUNCTION livewell.withdraw_keys FROM PUBLIC;
