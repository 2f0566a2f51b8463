-- Who is this? The one contact that has these identities; it is made, added to or merged as needed.
--
-- Called by: Contacts.resolve, POST /v1/contacts/resolve.
-- p_request: the same id again is answered as the first time. p_revive: of an erased person too.
-- Race free: identities are written in one order, then contacts are locked in one order, then it is
-- decided (settle_identities). If what was locked is not what the identities point to any more, all
-- of it is undone by a savepoint, and done again.
-- Cost: what is known already is one look, without a lock and without a write.
-- Why SECURITY DEFINER: livewell_api has no table rights; it acts only on rows of the tenant it is
-- given.
CREATE OR REPLACE FUNCTION livewell.resolve_contact(
    p_tenant text, p_types text[], p_values text[], p_fields jsonb DEFAULT NULL,
    p_request text DEFAULT NULL, p_revive boolean DEFAULT false, p_trace text DEFAULT NULL
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    c_tries_max CONSTANT integer := 200;
    v_now       pg_catalog.timestamptz := livewell.now();   -- for people; it orders nothing but ages
    v_ready     livewell.given_identity[];
    v_blocked   pg_catalog.text[];
    v_input     pg_catalog.bytea;
    v_kept      record;
    v_answer    pg_catalog.jsonb;
BEGIN
    PERFORM livewell.enter_tenant(p_tenant);
    IF p_fields IS NOT NULL
        AND (jsonb_typeof(p_fields) <> 'object' OR octet_length(p_fields::pg_catalog.text) > 16384) THEN
        RAISE EXCEPTION 'fields of a contact: a JSON object of at most 16,384 bytes is allowed'
            USING ERRCODE = 'LW003';
    END IF;
    SELECT r.o_ready, r.o_blocked INTO v_ready, v_blocked
    FROM livewell.ready_identities(p_tenant, p_types, p_values) r;
    IF p_request IS NOT NULL THEN
        IF octet_length(p_request) NOT BETWEEN 1 AND 200 THEN
            RAISE EXCEPTION 'request id "%": 1 to 200 bytes are allowed', left(p_request, 50)
                USING ERRCODE = 'LW003';
        END IF;
        v_input := livewell.identity_hash(p_tenant, 'request', concat_ws(E'\x1e', (
            SELECT string_agg(concat_ws(E'\x1f', u.type, u.value), E'\x1e' ORDER BY u.place)
            FROM unnest(v_ready) u), v_blocked, p_fields, p_revive));
        SELECT q.answer, q.input INTO v_kept FROM livewell.contact_request q
        WHERE q.tenant = p_tenant AND q.request = p_request;
        IF FOUND AND v_kept.input = v_input THEN
            RETURN v_kept.answer;
        ELSIF FOUND THEN
            RAISE EXCEPTION 'request id "%" was used for another call; give each call an id of its own', p_request
                USING ERRCODE = 'LW003';
        END IF;
    END IF;
    IF cardinality(v_ready) = 0 THEN
        RETURN livewell.contact_answer('blocked') || jsonb_build_object('blocked', v_blocked);
    END IF;

    v_answer := livewell.known_contact(p_tenant, v_ready, p_fields);
    FOR v_try IN 1 .. c_tries_max LOOP
        EXIT WHEN v_answer IS NOT NULL;
        <<once>>
        BEGIN
            v_answer := livewell.settle_identities(p_tenant, v_ready, p_fields, p_revive, p_trace);
            IF p_request IS NOT NULL THEN
                INSERT INTO livewell.contact_request (tenant, request, input, answer, answered_at)
                VALUES (p_tenant, p_request, v_input,
                    v_answer || jsonb_build_object('blocked', v_blocked), v_now)
                ON CONFLICT DO NOTHING;
            END IF;
        EXCEPTION
            WHEN SQLSTATE 'LW030' THEN v_answer := NULL;    -- raised by lock_held: moved meanwhile
        END once;
    END LOOP;
    IF v_answer IS NULL THEN
        RAISE EXCEPTION 'the contacts of these identities were merged % times while they were waited for', c_tries_max
            USING ERRCODE = '40001';
    END IF;
    RETURN v_answer || jsonb_build_object('blocked', v_blocked);
END
$$;
COMMENT ON FUNCTION livewell.resolve_contact IS
    'The contact with these identities: found, made, added to or merged; race free and repeatable.';
REVOKE ALL ON FUNCTION livewell.resolve_contact FROM PUBLIC;
