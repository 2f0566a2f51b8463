-- Drop the oldest history partition that is wholly older than p_keep_days. At most one per call.
--
-- Called by: worker, hourly, until it answers NULL.
-- SECURITY DEFINER: dropping a partition needs the owner; the only input is a number, and fewer
-- than 1 day is refused.
-- lock_timeout: the drop needs a moment alone with the parent. If it cannot have it within 100 ms
-- it gives up (55P03) and the caller tries later; nobody who wants to finish a job waits longer
-- than that because of us.
-- Types are qualified: search_path = '' still looks into pg_temp first for types, and a caller's
-- own domain would run as us.
CREATE OR REPLACE FUNCTION livewell.drop_history_day(p_keep_days integer)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET lock_timeout = '100ms'
SET timezone = 'UTC'
AS $$
DECLARE
    v_today pg_catalog.date := livewell.now()::pg_catalog.date;
    v_name  pg_catalog.text;
BEGIN
    IF p_keep_days < 1 THEN
        RAISE EXCEPTION 'history is kept at least 1 day, not %', p_keep_days
            USING ERRCODE = 'LW003';
    END IF;
    SELECT c.relname INTO v_name
    FROM pg_catalog.pg_inherits i
    JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'livewell.job_history'::pg_catalog.regclass
        AND c.relname < 'job_history_' || to_char(v_today - p_keep_days, 'YYYYMMDD')
    ORDER BY c.relname LIMIT 1;
    IF FOUND THEN
        EXECUTE format('DROP TABLE livewell.%I', v_name);
    END IF;
    RETURN v_name;
END
$$;
COMMENT ON FUNCTION livewell.drop_history_day IS
    'Drops one expired daily partition of job_history; answers its name, or NULL when none is '
    'left.';
REVOKE ALL ON FUNCTION livewell.drop_history_day FROM PUBLIC;
