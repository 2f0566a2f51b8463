-- A domain in lower case and in ASCII, as IDNA does it for look-up: bücher.de is xn--bcher-kva.de.
--
-- Called by: normal_identity.
CREATE OR REPLACE FUNCTION livewell.normal_domain(p_domain text)
RETURNS text
LANGUAGE plpgsql
STABLE
STRICT
SET search_path = ''
AS $$
BEGIN
    IF p_domain !~ '[^\x01-\x7f]' THEN
        RETURN rtrim(lower(p_domain COLLATE "C"), '.');
    END IF;
    RETURN (
        SELECT string_agg(
            CASE
                WHEN l.label ~ '[^\x01-\x7f]' THEN 'xn--' || livewell.punycode(l.label)
                ELSE l.label
            END, '.' ORDER BY l.place)
        FROM regexp_split_to_table(
            rtrim(translate(livewell.lower_letters(normalize(p_domain, NFKC)), '。', '.'), '.'),
            '\.') WITH ORDINALITY AS l (label, place)
    );
END
$$;
COMMENT ON FUNCTION livewell.normal_domain IS 'A domain as names are looked up: lower case, ASCII.';
REVOKE ALL ON FUNCTION livewell.normal_domain FROM PUBLIC;
