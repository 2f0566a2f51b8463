-- Who a stranger is, as far as it is stored: hashes of its public key and of its network, with the
-- salt of this database, in one text with a blank between.
--
-- Called by: open_session and spend_cold_read, which run as the owner. p_origin:
--            public:<key>@<network>, as the server sees it.
CREATE OR REPLACE FUNCTION livewell.origin_of(p_origin text)
RETURNS text
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT encode(sha256(s.salt || convert_to(split_part(p_origin, '@', 1), 'UTF8')), 'hex') || ' '
        || encode(sha256(s.salt || convert_to('@' || split_part(p_origin, '@', 2), 'UTF8')), 'hex')
    FROM livewell.cold_salt s WHERE p_origin LIKE 'public:%@%'
$$;
COMMENT ON FUNCTION livewell.origin_of IS 'Hashes of a stranger''s public key and network.';
REVOKE ALL ON FUNCTION livewell.origin_of FROM PUBLIC;
