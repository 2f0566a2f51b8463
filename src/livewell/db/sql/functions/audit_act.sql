-- Write down what an operator did, in the transaction that does it: who, from where, what, to what,
-- with which arguments, what became of it, what was there before and after, and how many.
--
-- Called by: begin_bulk_act, close_breaker, end_bulk_act, end_login, mend_dead, mint_key,
--            pause_queues, probe_breaker, record_act, redeem_link, refresh_key, resume_upstream, step_bulk_act,
--            take_singleton, withdraw_keys; statements of db/acts.py.
-- p_origin:  NULL: the setting livewell.origin of this transaction says it (db/acts.py). An origin
--            without an address gets that of the connection.
-- hidden:    a document that is too long, or looks like a secret, leaves its size and a hash, so that
--            one can see that two are the same or what was edited back. The hash is of what redact
--            leaves, if that is not all: a password must not be guessed from it.
-- Why SECURITY DEFINER: whoever may act writes a line and can neither change nor delete one; and no
-- text is written that was not redacted and bounded.
-- Why pg_catalog.text: see warn(). session_user is the login, whoever this function runs as.
CREATE OR REPLACE FUNCTION livewell.audit_act(
    p_actor text,
    p_origin text,
    p_action text,
    p_subject text,
    p_arguments jsonb,
    p_answer text,
    p_before jsonb,
    p_after jsonb,
    p_n bigint
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    v_now pg_catalog.timestamptz := livewell.now();
    v_origin pg_catalog.text := coalesce(
        p_origin, nullif(pg_catalog.current_setting('livewell.origin', true), '')
    );
    v_address pg_catalog.text := pg_catalog.host(pg_catalog.inet_client_addr());
    v_left pg_catalog.text;
    v_texts pg_catalog.text[] := ARRAY[
        coalesce(p_arguments, '{}')::pg_catalog.text, p_before::pg_catalog.text,
        p_after::pg_catalog.text
    ];
BEGIN
    FOR v_place IN 1 .. 3 LOOP
        v_left := livewell.redact(v_texts[v_place]);
        IF pg_catalog.octet_length(v_texts[v_place]) > 2000 OR v_left <> v_texts[v_place] THEN
            IF v_left = left(v_texts[v_place], 4000) THEN   -- it is only long
                v_left := v_texts[v_place];
            END IF;
            v_texts[v_place] := pg_catalog.jsonb_build_object(
                'hidden', true, 'bytes', pg_catalog.octet_length(v_texts[v_place]),
                'sha256', encode(sha256(convert_to(v_left, 'UTF8')), 'hex')
            )::pg_catalog.text;
        END IF;
    END LOOP;
    IF v_origin NOT LIKE '% %' AND v_address IS NOT NULL THEN
        v_origin := v_origin || ' ' || v_address;
    END IF;
    INSERT INTO livewell.audit (
        at, actor, login, action, subject, arguments, answer, origin, before, after, n
    )
    VALUES (
        v_now, left(livewell.redact(p_actor), 200), session_user, left(p_action, 100),
        left(livewell.redact(p_subject), 200), v_texts[1]::pg_catalog.jsonb,
        left(livewell.redact(coalesce(p_answer, '')), 200), left(livewell.redact(v_origin), 50),
        v_texts[2]::pg_catalog.jsonb, v_texts[3]::pg_catalog.jsonb,
        CASE WHEN p_n IS NOT NULL THEN greatest(p_n, 0) END
    );
END
$$;
COMMENT ON FUNCTION livewell.audit_act IS
    'Records who did what to what, from where, with its answer, and what was before and after.';
REVOKE ALL ON FUNCTION livewell.audit_act FROM PUBLIC;
