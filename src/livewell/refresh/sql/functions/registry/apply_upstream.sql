-- Put an upstream into the registry, or bring it up to date; its limiter and its queue with it, in
-- one transaction.
--
-- Called by: `livewell types apply`, as the owner; nobody else may. p_row has the columns of
--            livewell.upstream, p_limits those of livewell.limiter.
-- Nobody is kept waiting: a lock that is not there within 100 ms fails the call, and the caller
-- tries again (contract 16). The version grows only if something has changed. What the limiter has
-- used stays as it is.
CREATE OR REPLACE FUNCTION livewell.apply_upstream(
    p_row jsonb, p_limits jsonb, p_credentials text[])
RETURNS TABLE (outcome text, version bigint)
LANGUAGE plpgsql
SET search_path = ''
SET lock_timeout = '100ms'
AS $$
DECLARE
    v_wanted    livewell.upstream := jsonb_populate_record(NULL::livewell.upstream, p_row);
    v_is        livewell.upstream;
    v_now       timestamptz;
    v_role      text := current_setting('role');
BEGIN
    -- Whoever may, acts as the owner, so that the owner owns what is made; at the end he is himself
    -- again.
    PERFORM set_config(
        'role',
        (
            SELECT r.rolname FROM pg_catalog.pg_namespace n
            JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner
            WHERE n.nspname = 'livewell_data'),
        true);
    <<work>>
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtextextended('livewell.registry', 0));
        SELECT * INTO v_is FROM livewell.upstream u WHERE u.name = v_wanted.name FOR UPDATE;
        v_now := livewell.now();
        PERFORM livewell.declare_limiter(v_wanted.name, p_limits, p_credentials);
        PERFORM livewell.declare_queue(
            livewell.refresh_queue(v_wanted.name), 4, 5, 300, 5,
            jsonb_build_object('limiter', v_wanted.name));
        IF v_is.name IS NULL THEN
            INSERT INTO livewell.upstream (
                name, base_url, credential_in, vocabulary, counts, definition, version, applied_at)
            VALUES (
                v_wanted.name, v_wanted.base_url, v_wanted.credential_in, v_wanted.vocabulary,
                v_wanted.counts, v_wanted.definition, 1, v_now);
            RETURN QUERY SELECT 'created', 1::bigint;
        ELSIF (v_is.base_url, v_is.credential_in, v_is.vocabulary, v_is.counts, v_is.definition)
            IS DISTINCT FROM (
                v_wanted.base_url, v_wanted.credential_in, v_wanted.vocabulary, v_wanted.counts,
                v_wanted.definition) THEN
            UPDATE livewell.upstream u
            SET base_url = v_wanted.base_url, credential_in = v_wanted.credential_in,
                vocabulary = v_wanted.vocabulary, counts = v_wanted.counts,
                definition = v_wanted.definition,
                version = u.version + 1, applied_at = v_now
            WHERE u.name = v_wanted.name;
            RETURN QUERY SELECT 'changed', v_is.version + 1;
        ELSE
            RETURN QUERY SELECT 'unchanged', v_is.version;
        END IF;
    END work;
    PERFORM set_config('role', v_role, true);
END
$$;
COMMENT ON FUNCTION livewell.apply_upstream IS
    'Puts an upstream, its limiter and its queue into the registry.';
REVOKE ALL ON FUNCTION livewell.apply_upstream FROM PUBLIC;
