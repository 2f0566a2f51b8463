-- Write what a type's file says now into its row of the registry, as the next version.
--
-- Called by: apply_type, under its lock and as the owner. p_is: the row as it is.
-- A measured size estimate stays until the file states another. The walk of a schedule is planned
-- anew only if the schedule has changed.
CREATE OR REPLACE FUNCTION livewell.update_type(
    p_is livewell.data_type, p_wanted livewell.data_type, p_now timestamptz)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_moved boolean := (p_is.cron, p_is.zone) IS DISTINCT FROM (p_wanted.cron, p_wanted.zone);
BEGIN
    UPDATE livewell.data_type t
    SET ttl = p_wanted.ttl, negative_ttl = p_wanted.negative_ttl, strategy = p_wanted.strategy,
        cron = p_wanted.cron, zone = p_wanted.zone,
        cron_due_at = CASE WHEN v_moved THEN p_wanted.cron_due_at ELSE t.cron_due_at END,
        cron_cursor = CASE WHEN p_wanted.cron IS NULL THEN NULL ELSE t.cron_cursor END,
        rule = p_wanted.rule, calendar = p_wanted.calendar,
        max_source_age = p_wanted.max_source_age, has_source_time = p_wanted.has_source_time,
        rows_kind = p_wanted.rows_kind,
        pool = p_wanted.pool, keys_max = p_wanted.keys_max, key_pattern = p_wanted.key_pattern,
        prefetch = p_wanted.prefetch,
        size_estimate = CASE
            WHEN p_is.definition #> '{type,size_estimate}'
                 = p_wanted.definition #> '{type,size_estimate}'
            THEN t.size_estimate ELSE p_wanted.size_estimate END,
        parked_reason = NULL, definition = p_wanted.definition, columns = p_wanted.columns,
        version = t.version + 1, applied_at = p_now
    WHERE t.name = p_wanted.name;
END
$$;
COMMENT ON FUNCTION livewell.update_type IS
    'Brings a type of the registry up to date with its file.';
REVOKE ALL ON FUNCTION livewell.update_type FROM PUBLIC;
