-- The last sample of a part of the system, and whether the caller is to take a new one.
--
-- Called by: read_queue_sample, state_refresh, state_outbox. Whoever is told to take it calls
--            keep_sample afterwards, in the same transaction.
-- Of those who ask at once one is told to; the others are given the old one, which says how old it
-- is. The lock is one of the transaction: it works behind a pooler, and ends with the asker.
-- Older than three times the age, everybody is told to: whoever was told before is stuck. So is a
-- sample from the future: the clock was set back.
CREATE OR REPLACE FUNCTION livewell.find_sample(
    p_name text, p_now timestamptz, p_age_max interval DEFAULT interval '10 seconds'
)
RETURNS TABLE (at timestamptz, value jsonb, wanted boolean)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_variable
BEGIN
    SELECT s.at, s.value INTO at, value FROM livewell.state_sample s WHERE s.name = p_name;
    wanted := CASE
        WHEN at IS NULL OR at > p_now OR at < p_now - 3 * p_age_max THEN true
        WHEN at < p_now - p_age_max
            THEN pg_catalog.pg_try_advisory_xact_lock(7601, pg_catalog.hashtext(p_name))
        ELSE false END;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION livewell.find_sample IS
    'The last sample of a part of the system, and whether the caller is to take a new one.';
REVOKE ALL ON FUNCTION livewell.find_sample FROM PUBLIC;
