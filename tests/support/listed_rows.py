"""Three rows for everything that is listed in pages.

Names that sort differently by letters and by bytes, and keys that two types share.
"""

FILL = """
INSERT INTO livewell.queue (name, created_at) VALUES ('a.b', now()), ('a-b', now()), ('a_b', now()) ON CONFLICT DO NOTHING;
INSERT INTO livewell.job (id, rank, run_at, created_at, state, max_attempts, queue, kind, payload)
SELECT 9000 + n, n, now(), now(), 'ready', 1, 'a.b', 'work', '{}' FROM generate_series(1, 3) AS n;
INSERT INTO livewell.dead_job (id, created_at, died_at, attempt, max_attempts, lost, priority, lane, queue, kind, reason, payload)
SELECT 9100 + n, now(), now(), 1, 1, 0, 0, 1, 'a.b', 'work', 'attempts', '{}' FROM generate_series(1, 3) AS n;
INSERT INTO livewell.schedule (name, seen_at, created_at, every, timeout, kind, missed)
SELECT name, now(), now(), '1 hour', '1 minute', 'interval', 'skip' FROM unnest(ARRAY['nightly', 'night_ly', 'night.ly']) AS name;
INSERT INTO livewell.run (due_at, last_due_at, started_at, finished_at, fence, state, schedule, holder)
SELECT now() - n * interval '1 hour', now(), now(), now(), n, 'succeeded', 'nightly', 'test' FROM generate_series(1, 3) AS n;
INSERT INTO livewell.alert (rule, subject, state, level, summary, fired_at) SELECT 'queue_deep', 'queue ' || n, 'fired', 'P1', 'deep', now() FROM generate_series(1, 3) AS n;
INSERT INTO livewell.alert_firing (fired_at, ended_at, rule, subject, level, summary) SELECT now() - interval '1 hour', now(), 'queue_deep', 'queue ' || n, 'P1', 'deep' FROM generate_series(1, 3) AS n;
INSERT INTO livewell.audit (at, actor, login, action, subject, arguments, answer) SELECT now(), 'cli:test', 'test', 'types.pause', 'quote', '{}', 'done' FROM generate_series(1, 3);
INSERT INTO livewell.bulk_act (asked_at, before_at, stepped_at, ended_at, from_id, up_to_id, expected, action, state, asked_by, filter)
SELECT now(), now(), now(), now(), 0, 0, 0, 'cancel', 'done', 'cli:test', '{}' FROM generate_series(1, 3);
SELECT livewell.warn('place', 'thing ' || n, NULL) FROM generate_series(1, 3) AS n;
INSERT INTO livewell.universe (data_type, key, added_at) SELECT 'quote', key, now() FROM unnest(ARRAY['A', 'A.B', 'A-B']) AS key ON CONFLICT DO NOTHING;
INSERT INTO livewell.ledger (data_type, key, upstream, status_at, ttl_override)
SELECT type, key, 'fmp', now(), '5 s' FROM unnest(ARRAY['profile', 'quote']) AS type, unnest(ARRAY['AAPL', 'IBM', 'BRK-B']) AS key
ON CONFLICT (data_type, key) DO UPDATE SET ttl_override = '5 s';
SELECT livewell.create_key('paged000' || n, sha256('x'::bytea), 'key', 'paged', '{view}', NULL, false, NULL) FROM generate_series(1, 3) AS n;
SELECT livewell.ensure_event_days(3);
SELECT livewell.declare_topic(name, '{"on_dead": "park"}') FROM unnest(ARRAY['a.b', 'a-b', 'a_b']) AS name;
SELECT livewell.declare_sink(name, 'own', CASE name WHEN 'ab' THEN '{*}' ELSE '{none.*}' END::text[], '{}') FROM unnest(ARRAY['a-b', 'a_b', 'ab']) AS name;
SELECT livewell.emit_event('a.b', '{}', 'k' || n) FROM generate_series(1, 3) AS n;
SELECT livewell.bury_events(s.id, array_agg(d.number), array_agg('refused'::text), array_agg('no'::text))
FROM livewell.event_delivery d JOIN livewell.event_sink s ON s.id = d.sink GROUP BY s.id;
SELECT livewell.begin_replay('ab', NULL, NULL, NULL, now() - interval '1 day', NULL, 1, 'r' || n) FROM generate_series(1, 3) AS n;
SELECT livewell.resolve_contact('default', '{external_id}', ARRAY[side || n]) FROM generate_series(1, 3) AS n, unnest('{a,b}'::text[]) AS side;
SELECT livewell.resolve_contact('default', '{external_id,external_id}', ARRAY['a' || n, 'b' || n]) FROM generate_series(1, 3) AS n;
"""
