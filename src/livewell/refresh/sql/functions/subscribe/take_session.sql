-- Count one more session of a stranger, if its public key and its address have room (session_room);
-- answers whether they had.
--
-- Called by: open_session, after it has inserted the session. p_origin: as origin_of answers.
--            p_max: what the public key may have.
-- Locks: after the session, before budgets and ledger; the key's row, then the address's, which is
-- the order of their names. Looked at after the locks, in a statement of its own.
CREATE OR REPLACE FUNCTION livewell.take_session(p_origin text, p_max integer)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    INSERT INTO livewell.session_share AS h ("name", sessions)
    VALUES (split_part(p_origin, ' ', 1), 1), (p_origin, 1)
    ON CONFLICT ("name") DO UPDATE SET sessions = h.sessions + 1;
    IF livewell.session_room(p_origin, p_max, 0) THEN
        RETURN true;
    END IF;
    PERFORM livewell.free_sessions(ARRAY[p_origin]);
    RETURN false;
END
$$;
COMMENT ON FUNCTION livewell.take_session IS
    'Counts one more session of a public key and an address; false, and nothing counted, when one '
    'of them has as many as it may.';
REVOKE ALL ON FUNCTION livewell.take_session FROM PUBLIC;
