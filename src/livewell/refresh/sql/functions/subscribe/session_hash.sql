-- What is stored of a session's id: 128 bits of its SHA-256. The id itself is a secret of its
-- client (L4): whoever reads the tables cannot act for a session.
--
-- Called by: many functions; every function that is given a session; servers and other clients give
--            the id, and never see the hash.
-- 128 bits: an id is a uuid and has 122 random bits, more could not be guessed any worse. No salt:
-- ids are random.
CREATE OR REPLACE FUNCTION livewell.session_hash(p_session uuid)
RETURNS uuid
LANGUAGE sql
IMMUTABLE STRICT PARALLEL SAFE
SET search_path = ''
AS $$
    SELECT encode(substr(sha256(uuid_send(p_session)), 1, 16), 'hex')::pg_catalog.uuid
$$;
COMMENT ON FUNCTION livewell.session_hash IS
    'The id under which a session is stored: a hash of the one that its client has.';
REVOKE ALL ON FUNCTION livewell.session_hash FROM PUBLIC;
