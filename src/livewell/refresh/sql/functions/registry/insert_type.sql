-- Write a new type into the registry, as version 1.
--
-- Called by: apply_type, under its lock and as the owner.
CREATE OR REPLACE FUNCTION livewell.insert_type(p_wanted livewell.data_type, p_now timestamptz)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    INSERT INTO livewell.data_type (
        name, upstream, ttl, negative_ttl, strategy, cron, zone, cron_due_at, rule,
        calendar, max_source_age, has_source_time, rows_kind, pool, keys_max,
        key_pattern, size_estimate, prefetch, definition, columns, version, applied_at)
    VALUES (
        p_wanted.name, p_wanted.upstream, p_wanted.ttl, p_wanted.negative_ttl,
        p_wanted.strategy, p_wanted.cron, p_wanted.zone, p_wanted.cron_due_at,
        p_wanted.rule, p_wanted.calendar, p_wanted.max_source_age,
        p_wanted.has_source_time, p_wanted.rows_kind, p_wanted.pool, p_wanted.keys_max,
        p_wanted.key_pattern, p_wanted.size_estimate, p_wanted.prefetch,
        p_wanted.definition, p_wanted.columns, 1, p_now);
END
$$;
COMMENT ON FUNCTION livewell.insert_type IS 'Writes a new type into the registry.';
REVOKE ALL ON FUNCTION livewell.insert_type FROM PUBLIC;
