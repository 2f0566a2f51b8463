-- Keep a sample for those who ask next; false when it cannot be kept: on a replica, in a
-- transaction that only reads, or for a role that may only look.
--
-- Called by: read_queue_sample, state_refresh, state_outbox.
CREATE OR REPLACE FUNCTION livewell.keep_sample(p_name text, p_now timestamptz, p_value jsonb)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    IF pg_catalog.current_setting('transaction_read_only')::boolean
        OR NOT pg_catalog.has_table_privilege('livewell.state_sample', 'INSERT, UPDATE')
    THEN
        RETURN false;
    END IF;
    INSERT INTO livewell.state_sample AS s (name, at, value) VALUES (p_name, p_now, p_value)
    ON CONFLICT (name) DO UPDATE SET at = excluded.at, value = excluded.value;
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.keep_sample IS
    'Keeps a sample of a part of the system; false where nothing can be written.';
REVOKE ALL ON FUNCTION livewell.keep_sample FROM PUBLIC;
