-- Bring the schedules walk.<type> in line with the registry: one for each scheduled type, with its cron
-- text, held while the type cannot walk (R19).
--
-- Called by: refresh/due/walk.py, once a second, by the holder of the due check.
-- Index:     none: data_type and schedule are small, at most 1,000 rows each.
-- Writes only what differs. So a type whose file changed takes effect within a second, without a restart.
-- A type that cannot have a schedule (there are too many, its cron text is too long) is warned of, and
-- stops no other.
CREATE OR REPLACE FUNCTION livewell.sync_walks()
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_walk record;
BEGIN
    PERFORM livewell.remove_open_schedule(s.name)
    FROM livewell.schedule s
    WHERE s.open_ended AND starts_with(s.name, 'walk.') AND NOT EXISTS (
        SELECT FROM livewell.data_type t
        WHERE t.name = substr(s.name, 6) AND t.strategy = 'scheduled');
    FOR v_walk IN
        SELECT t.name, t.cron, t.zone, h.held
        FROM livewell.data_type t
        CROSS JOIN LATERAL (SELECT livewell.walk_held(t) AS held) h
        LEFT JOIN livewell.schedule s ON s.name = 'walk.' || t.name AND s.open_ended
        WHERE t.strategy = 'scheduled'
          AND (s.cron, s.zone, s.held_at IS NOT NULL) IS DISTINCT FROM (t.cron, t.zone, h.held)
        ORDER BY t.name
    LOOP
        <<declaring>>
        BEGIN
            PERFORM livewell.declare_open_schedule(
                'walk.' || v_walk.name, v_walk.cron, v_walk.zone, v_walk.held);
        EXCEPTION WHEN check_violation OR SQLSTATE 'LW003' THEN
            PERFORM livewell.warn('refresh.schedule', 'a scheduled type has no schedule',
                                  v_walk.name || ': ' || SQLERRM);
        END declaring;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.sync_walks IS 'Declares, changes, holds and removes the schedules of scheduled types.';
REVOKE ALL ON FUNCTION livewell.sync_walks FROM PUBLIC;
