-- Mask what looks like a secret.
--
-- Called by: audit_act, bury_events, end_bulk_act, evaluate_rule, fail_events, finish_run,
--            observe_alerts, postpone_bulk_act, settle_attempt, silence_alerts, step_bulk_act,
--            unsilence_alerts; warn(), and whoever shows text that came from outside.
-- Types are qualified because warn() calls this with its owner's rights, see there.
-- Masks too much rather than too little: a path that is hidden costs a look at the log, a password
-- that is shown costs a rotation.
-- The text is cut to 8,000 characters before and 4,000 after, so a secret that straddles the first
-- cut does not survive the second.
CREATE OR REPLACE FUNCTION livewell.redact(p_text text)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
STRICT
PARALLEL SAFE
SET search_path = ''
AS $$
DECLARE
    v_text pg_catalog.text := left(p_text, 8000);
BEGIN
    -- scheme://user:password@host, up to the last @, as people write unescaped @ and / into
    -- passwords
    v_text := regexp_replace(v_text, '(://[^\s/:@]*:)[^\s"''<>]*@', '\1***@', 'g');
    -- scheme://token@host
    v_text := regexp_replace(v_text, '://[^\s/@*]+@', '://***@', 'g');
    -- Authorization: Basic dXNlcg==
    v_text := regexp_replace(
        v_text, '(authorization["'']?\s*[=:]\s*["'']?)([a-z]+\s+)?[^\s"'',;]+', '\1***', 'gi'
    );
    v_text := regexp_replace(v_text, '\m(bearer\s+)[^\s"'',;]+', '\1***', 'gi');
    -- password=x, "api_key": "x", client_secret='a b', ?apikey=x&…
    v_text := regexp_replace(
        v_text,
        '((?:passw(?:or)?d|passphrase|pwd|secret|api[_-]?key|access[_-]?key|private[_-]?key|'
        'token|signature)[a-z0-9_-]*["'']?\s*[=:]\s*)'
        '(?:"(?:[^"\\]|\\.)*"?|''(?:[^''\\]|\\.)*''?|[^\s&,;"'')}\]]+)',
        '\1***', 'gi'
    );
    -- our own keys, and JSON web tokens
    v_text := regexp_replace(v_text, '\mlw_[a-z0-9_-]{8,}', 'lw_***', 'gi');
    v_text := regexp_replace(v_text, '\meyJ[a-z0-9_-]+\.[a-z0-9_-]+\.[a-z0-9_-]*', '***', 'gi');
    RETURN left(v_text, 4000);
END
$$;
COMMENT ON FUNCTION livewell.redact IS
    'Masks passwords, keys and tokens in a text, and bounds its length.';
REVOKE ALL ON FUNCTION livewell.redact FROM PUBLIC;
