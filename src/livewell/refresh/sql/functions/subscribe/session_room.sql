-- Whether a stranger's public key and address may have p_more sessions beyond those they have.
--
-- Called by: open_session, to refuse without a write and without a lock when there is no room; and
--            take_session, which holds the locks. p_origin: as origin_of answers. p_max: what the
--            key may have.
-- Shares (R3): an address may have a tenth of its key's sessions, at least one: so nobody alone can
-- use up what a page has for all its visitors.
-- Index:     session_share_pkey.
CREATE OR REPLACE FUNCTION livewell.session_room(p_origin text, p_max integer, p_more integer)
RETURNS boolean
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    c_share CONSTANT pg_catalog.int4 := 10;
BEGIN
    RETURN NOT EXISTS (
        SELECT FROM livewell.session_share h
        WHERE h.name = ANY (ARRAY[split_part(p_origin, ' ', 1), p_origin])
          AND h.sessions + p_more >
              CASE WHEN h.name = p_origin THEN greatest(p_max / c_share, 1) ELSE p_max END);
END
$$;
COMMENT ON FUNCTION livewell.session_room IS
    'Whether a public key and an address may have more sessions than they have.';
REVOKE ALL ON FUNCTION livewell.session_room FROM PUBLIC;
