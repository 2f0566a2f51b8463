-- Delete dead letters for good.
--
-- Called by: act_on_page; CLI `dead discard`, clients, which write down who did it.
-- A letter that is being redriven right now is left alone. A batch keeps counting it as failed.
CREATE OR REPLACE FUNCTION livewell.discard_dead(p_ids bigint[])
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_n bigint;
BEGIN
    DELETE FROM livewell.dead_job d
    WHERE d.id = ANY (
        ARRAY(
            SELECT o.id FROM livewell.dead_job o
            WHERE o.id = ANY (p_ids)
            ORDER BY o.id FOR UPDATE SKIP LOCKED
        )
    );
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.discard_dead IS
    'Deletes dead letters; answers how many there were.';
REVOKE ALL ON FUNCTION livewell.discard_dead FROM PUBLIC;
