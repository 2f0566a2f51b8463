-- Refuse a new job that is outside the bounds, and say which they are.
--
-- Called by: insert_jobs, enqueue_plain, enqueue_one, enqueue_keyed, for a job whose bounds they
--            found broken; it never returns. They look themselves, in the statement that inserts:
--            as a trigger with a condition the look took 95 of 730 µs of a single enqueue, because
--            Postgres reads the condition's source anew in every statement.
CREATE OR REPLACE FUNCTION livewell.refuse_job(
    p_lane integer, p_priority integer, p_attempts integer, p_payload jsonb
)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    IF octet_length(p_payload::pg_catalog.text) > 262144 THEN
        RAISE EXCEPTION 'the payload has % bytes; 262144 are allowed',
            octet_length(p_payload::pg_catalog.text)
            USING ERRCODE = 'LW005';
    END IF;
    RAISE EXCEPTION
        'a job is born in lane 0 or 1 (not %), with a priority from -100 to 100 (not %), '
        '1 to 100 attempts (not %), a kind of 1 to 200 bytes and keys of 1 to 512 bytes',
        p_lane, p_priority, p_attempts
        USING ERRCODE = 'LW003';
END
$$;
COMMENT ON FUNCTION livewell.refuse_job IS 'Raises what is wrong with a new job.';
REVOKE ALL ON FUNCTION livewell.refuse_job FROM PUBLIC;
