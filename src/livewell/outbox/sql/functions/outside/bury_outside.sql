-- End the claimers outside whose lease has run out, at every sink: nobody of them may come again, and
-- what they held goes to others.
--
-- Called by: the duty livewell.outbox.outside, every few seconds.
CREATE OR REPLACE FUNCTION livewell.bury_outside()
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_sink  smallint;
    v_n     integer := 0;
BEGIN
    FOR v_sink IN
        SELECT DISTINCT r.sink FROM livewell.relay r
        WHERE r.token IS NOT NULL AND r.expires_at < v_now ORDER BY r.sink
    LOOP
        v_n := v_n + livewell.bury_relays(v_sink, NULL);
    END LOOP;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.bury_outside IS
    'Ends claimers outside whose lease has run out; answers how many.';
REVOKE ALL ON FUNCTION livewell.bury_outside FROM PUBLIC;
