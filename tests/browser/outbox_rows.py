"""An outbox with something of everything: sinks, a relay, blocked and parked keys, dead letters, a replay.

Event 9001 to 9009 wait, 9010 is parked behind dead letter 9011, 9011 to 9034 are dead letters.
"""

OUTBOX = """
SELECT livewell.ensure_event_days(3);
SELECT livewell.declare_topic('orders.created', '{}'), livewell.declare_topic('orders.paid', '{"on_dead": "park"}');
SELECT livewell.declare_sink(name, 'webhook', ARRAY['orders.*'], '{}') FROM unnest(ARRAY['shop', 'books', 'stopped']) AS name;
UPDATE livewell.event_sink SET paused_at = now() WHERE name = 'stopped';
INSERT INTO livewell.event (number, created_at, day, topic, tenant, key, payload)
SELECT 9000 + n, now() - (40 - n) * interval '1 second', (now() AT TIME ZONE 'UTC')::date,
    CASE WHEN n BETWEEN 10 AND 11 THEN 'orders.paid' ELSE 'orders.created' END, 'tenant ' || n % 4, 'order ' || n,
    CASE WHEN n = 13 THEN '{"password": "hunter2"}' ELSE '{"order": 20000000000000000001}' END::json
FROM generate_series(1, 34) n;
INSERT INTO livewell.event_delivery (number, key_hash, day, tenant_hash, sink, shard, attempt, aside)
SELECT e.number, e.number, e.day, hashtext(e.tenant), s.id, e.number & 63, (e.number IN (9008, 9009))::integer, e.number IN (9008, 9009, 9010)
FROM livewell.event e JOIN livewell.event_sink s ON s.name = 'shop' WHERE e.number <= 9010;
INSERT INTO livewell.event_block (key_hash, number, retry_at, since, sink, shard, state, reason)
SELECT CASE n WHEN 9011 THEN 9010 ELSE n END, n, CASE n WHEN 9011 THEN 'infinity' ELSE now() + interval '1 hour' END, now(),
    s.id, n & 63, (CASE n WHEN 9011 THEN 'parked' ELSE 'failed' END)::livewell.block_state, 'the receiver answered 500'
FROM unnest(ARRAY[9008, 9009, 9011]) n JOIN livewell.event_sink s ON s.name = 'shop';
INSERT INTO livewell.dead_event (number, key_hash, died_at, day, tenant_hash, sink, shard, attempt, lost, parks, topic, reason, detail)
SELECT e.number, CASE e.number WHEN 9011 THEN 9010 ELSE e.number END, now(), e.day, hashtext(e.tenant), s.id, e.number & 63, 20, 0,
    e.number = 9011, e.topic, (ARRAY['attempts', 'refused', 'lost'])[1 + (e.number - 9011) / 10], 'the receiver answered 500'
FROM livewell.event e JOIN livewell.event_sink s ON s.name = 'shop' WHERE e.number > 9010;
SELECT livewell.renew_relay(livewell.register_relay('shop', 'web-7f9c (pid 4711)', '0.9.0', 3600), 3600, 0.04, NULL);
SELECT livewell.renew_relay(livewell.register_relay('books', 'web-7f9c (pid 4711)', '0.9.0', 3600), 3600, NULL, 'connection refused by 127.0.0.1:4222');
UPDATE livewell.relay SET away_since = now() - interval '7 minutes' WHERE away_since IS NOT NULL;
SELECT livewell.add_event_stats('shop', '{delivered,failed}', '{1200,7}', '{900,0}');
INSERT INTO livewell.event_replay (created_at, from_at, to_at, fed_at, rate, first_number, last_number, place, looked, fed, skipped, day, sink, topic, request_key)
SELECT now(), now() - interval '2 hours', now(), now(), 100, 9001, 9030, 9012, 12, 11, 1, (now() AT TIME ZONE 'UTC')::date, s.id, 'orders.created', 'a request'
FROM livewell.event_sink s WHERE s.name = 'shop'
"""
# Text that would be obeyed if it were not text. %(text)s is a literal.
HOSTILE_EVENT = """
INSERT INTO livewell.event (number, created_at, day, topic, tenant, key, payload)
VALUES (9099, now(), (now() AT TIME ZONE 'UTC')::date, 'orders.created', left(%(text)s, 100), left(%(text)s, 100), to_json(%(text)s::text));
INSERT INTO livewell.dead_event (number, key_hash, died_at, day, tenant_hash, sink, shard, attempt, lost, parks, topic, reason, detail)
SELECT 9099, 9099, now(), (now() AT TIME ZONE 'UTC')::date, 1, s.id, 1, 1, 0, false, 'orders.created', 'refused', %(text)s
FROM livewell.event_sink s WHERE s.name = 'shop'
"""
NOWHERE = """
SELECT livewell.ensure_event_days(3);
SELECT livewell.declare_topic('orders.created', '{}');
INSERT INTO livewell.event (number, created_at, day, topic, tenant, payload)
VALUES (9001, now(), (now() AT TIME ZONE 'UTC')::date, 'orders.created', '', '{}')
"""
EMPTY_SINK = """
SELECT livewell.declare_sink('idle', 'webhook', ARRAY['none.*'], '{}'),
    livewell.declare_sink('quiet', 'webhook', ARRAY['none.*'], '{}');
INSERT INTO livewell.dead_event (number, key_hash, died_at, day, tenant_hash, sink, shard, attempt, lost, parks, topic, reason)
SELECT 9001, 9001, now(), (now() AT TIME ZONE 'UTC')::date, 0, s.id, 0, 1, 0, false, 'orders.created', 'refused'
FROM livewell.event_sink s WHERE s.name = 'idle'
"""
