-- 0.7.0: walks of scheduled types are open-ended schedules (docs/adr/0016-walks-are-schedules.md).
-- Never edited after release; changes are a new numbered file.

-- A walk that is under way goes on with its run, and its schedule is planned anew. The others keep the
-- slot they waited for. data_type.cron_due_at is not used any more.
UPDATE livewell.schedule SET open_ended = true WHERE internal AND name LIKE 'walk.%';
INSERT INTO livewell.schedule AS s (
    name, kind, cron, zone, missed, timeout, internal, open_ended, due_at, seen_at, created_at)
SELECT 'walk.' || t.name, 'cron', t.cron, t.zone, 'once', interval '1 day', true, true, w.due_at,
       now(), now()
FROM livewell.data_type t
CROSS JOIN LATERAL (
    SELECT CASE WHEN NOT EXISTS (
        SELECT FROM livewell.run r WHERE r.schedule = 'walk.' || t.name AND r.state = 'running'
    ) THEN t.cron_due_at END AS due_at) w
WHERE t.strategy = 'scheduled' AND octet_length(t.cron) <= 100 AND octet_length(t.zone) <= 100
ON CONFLICT (name) DO UPDATE SET cron = excluded.cron, zone = excluded.zone, due_at = excluded.due_at
WHERE s.open_ended;
