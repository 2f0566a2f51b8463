-- The traceback of a job's last failure, NULL where there is none.
--
-- Called by: admin.job(), beside show_job: the columns of that one cannot change while workers of
--            the version before call it.
-- Index:     primary keys.
CREATE OR REPLACE FUNCTION livewell.show_traceback(p_id bigint)
RETURNS text
LANGUAGE sql
STABLE
SET search_path = ''
AS $$
    SELECT j.last_traceback FROM livewell.job j WHERE j.id = p_id
    UNION ALL
    SELECT d.traceback FROM livewell.dead_job d WHERE d.id = p_id
    LIMIT 1
$$;
COMMENT ON FUNCTION livewell.show_traceback IS
    'The traceback of the last failure of a live job or a dead letter: redacted, at most 8 kB.';
REVOKE ALL ON FUNCTION livewell.show_traceback FROM PUBLIC;
