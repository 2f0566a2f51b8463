-- The one form in which an identity is stored and compared.
--
-- Called by: find_contact, put_identity, ready_identities.
-- Every type: NFC, without the spaces around it. E-mail: the whole address in lower case, its domain
-- in ASCII; what stands behind a + and dots stay, unless the tenant folds them.
CREATE OR REPLACE FUNCTION livewell.normal_identity(
    p_type text, p_value text, p_fold_plus boolean, p_fold_dots boolean
)
RETURNS text
LANGUAGE plpgsql
STABLE
STRICT
SET search_path = ''
AS $$
DECLARE
    -- All spaces of Unicode: in the locale C, \s knows those of ASCII only.
    c_space     CONSTANT pg_catalog.text :=
        '[\s\u0085\u00a0\u1680\u2000-\u200d\u2028\u2029\u202f\u205f\u3000\ufeff]+';
    v_value     pg_catalog.text := regexp_replace(normalize(p_value, NFC),
        '^' || c_space || '|' || c_space || '$', '', 'g');
    v_local     pg_catalog.text;
BEGIN
    IF split_part(p_type, ':', 1) <> 'email' THEN
        RETURN v_value;
    END IF;
    IF v_value !~ '@' THEN
        RETURN livewell.lower_letters(v_value);
    END IF;
    v_local := livewell.lower_letters(regexp_replace(v_value, '@[^@]*$', ''));
    IF p_fold_plus AND v_local ~ '^[^+]+\+' THEN
        v_local := split_part(v_local, '+', 1);
    END IF;
    IF p_fold_dots AND v_local ~ '[^.]' THEN
        v_local := replace(v_local, '.', '');
    END IF;
    RETURN v_local || '@' || livewell.normal_domain(regexp_replace(v_value, '^.*@', ''));
END
$$;
COMMENT ON FUNCTION livewell.normal_identity IS 'The form in which an identity is stored and compared.';
REVOKE ALL ON FUNCTION livewell.normal_identity FROM PUBLIC;
