-- Give a singleton back before its lease ends, so that the next one need not wait for it.
--
-- Called by: finish_run, take_run; whoever stops in good order. Only its holder can: the fence must
--            be that of the present term.
CREATE OR REPLACE FUNCTION livewell.release_singleton(p_name text, p_fence bigint)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    UPDATE livewell.singleton s
    SET expires_at = '-infinity'
    WHERE s.name = p_name AND s.fence = p_fence;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION livewell.release_singleton IS
    'Ends the present term of a singleton; false when it is not ours.';
REVOKE ALL ON FUNCTION livewell.release_singleton FROM PUBLIC;
