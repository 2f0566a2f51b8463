-- Rows of every kind, as 0.9.0 left them; the clock of the rows is the clock of the restore.
SELECT livewell.ensure_history_days(2);
SELECT livewell.declare_queue('work', 5, 5, 300);
SELECT livewell.declare_queue('mail', 3, 1, 10);
SELECT livewell.enqueue_jobs('[
    {"id": 64, "queue": "work", "kind": "task", "payload": {"n": 1}},
    {"id": 65, "queue": "work", "kind": "task", "payload": {"n": 2}, "unique_key": "k", "group_key": "g", "lane": 0, "priority": 5},
    {"id": 66, "queue": "work", "kind": "task", "payload": {"n": 3}, "delay_seconds": 3600},
    {"id": 67, "queue": "mail", "kind": "task", "payload": {"n": 4}},
    {"id": 68, "queue": "mail", "kind": "task", "payload": {"n": 5}},
    {"id": 69, "queue": "mail", "kind": "task", "payload": {"n": 6}},
    {"id": 70, "queue": "mail", "kind": "task", "payload": {"n": 7}}
]');
SELECT setval('livewell.job_id_seq', 128);
SELECT livewell.register_worker('old', '0.9.0', ARRAY['mail', 'work'], ARRAY['task'], 10, 45);
CREATE TEMPORARY TABLE claimed AS SELECT c.id, c.fence FROM livewell.claim_jobs(1, ARRAY['mail'], 3) AS c;
SELECT livewell.finish_jobs(1, ARRAY[c.id], ARRAY[c.fence]) FROM claimed c WHERE c.id = 67;
SELECT livewell.finish_jobs(1, '{}', '{}', jsonb_build_array(jsonb_build_object('id', c.id, 'fence', c.fence, 'outcome', 'refused', 'reason', 'payload', 'error', 'no'))) FROM claimed c WHERE c.id = 68;
SELECT livewell.cancel_job(70);
SELECT livewell.add_stats(ARRAY['mail'], ARRAY['task'], ARRAY['succeeded'], ARRAY[1]::bigint[], ARRAY[5]::bigint[]);
SELECT livewell.warn('test', 'a warning of 0.9.0', 'sample');
SELECT livewell.maintain(1, 1, 30);
SELECT livewell.declare_limiter('api', '{"rate_calls": 300, "rate_seconds": 60, "budget_units": 1000000, "budget_unit": "bytes", "budget_seconds": 86400, "breaker_failures": 10}', ARRAY['main', 'spare']);
SELECT livewell.observe_limiter('api', 'main', 250, NULL, NULL, NULL);
SELECT livewell.create_batch(192, NULL, NULL, NULL);
SELECT livewell.apply_upstream('{"name":"fmp","base_url":"https://financialmodelingprep.com/stable","credential_in":"header:apikey","vocabulary":"fmp","counts":"larger","definition":{"name":"fmp","base_url":"https://financialmodelingprep.com/stable","credential_in":"header:apikey","credentials":["FMP_API_KEY"],"vocabulary":"fmp","counts":"larger","rate":"300/min","burst":10,"reserve":"10%","budget":"20GB/30d","budget_stop":"95%","budget_background_stop":"80%","concurrency":10,"per_key":1,"breaker":true}}', '{"burst": 10, "reserve": 0.1, "permit_seconds": 1.0, "estimate_units": 1, "concurrency": 10, "per_key": 1, "rate_calls": 300, "rate_seconds": 60.0, "budget_units": 20000000000, "budget_unit": "bytes", "budget_seconds": 2592000.0, "budget_stop": 0.95, "budget_background_stop": 0.8, "breaker_failures": 10, "breaker_share": 0.2, "breaker_seconds": 600.0, "breaker_in_row": 5, "open_seconds": 60.0, "open_seconds_max": 900.0, "wall_seconds": 21600.0}', ARRAY['FMP_API_KEY']::text[]);
SELECT livewell.apply_type('{"name":"quote","upstream":"fmp","ttl":"60.000000 seconds","negative_ttl":"3600.000000 seconds","strategy":"on_demand","cron":null,"zone":null,"rule":"session","calendar":"XNYS","max_source_age":"900.000000 seconds","has_source_time":true,"rows_kind":"one","pool":null,"keys_max":50,"key_pattern":"[A-Z0-9.^=-]{1,20}","size_estimate":450,"prefetch":false,"definition":{"type":{"name":"quote","title":"Stock quote","upstream":"fmp","ttl":"1m","negative_ttl":"1h","strategy":"on_demand","size_estimate":450},"fetch":{"path":"/quote","query":{"symbol":"{key}"},"body_bytes_max":100000,"batch":{"path":"/batch-quote","query":{"symbols":"{keys}"},"keys_max":50,"separator":","},"key_pattern":"[A-Z0-9.^=-]{1,20}"},"answer":{"rows":"@","kind":"one","key":"symbol","source_time":{"field":"timestamp","format":"unix_seconds"},"max_source_age":"15m","future_max":"5m","rule":"session","calendar":"XNYS"},"columns":{"name":{"type":"text","nullable":true,"max_length":300,"empty_is_null":true},"price":{"type":"numeric","min":0,"above_min":true,"max":10000000},"change_percentage":{"type":"numeric","from":"changePercentage","min":-100,"max":1000000},"change":{"type":"numeric","min":-10000000,"max":10000000},"volume":{"type":"numeric","min":0,"max":10000000000000,"nullable":true},"day_low":{"type":"numeric","from":"dayLow","min":0,"max":10000000},"day_high":{"type":"numeric","from":"dayHigh","min":0,"max":10000000},"year_high":{"type":"numeric","from":"yearHigh","min":0,"max":10000000,"nullable":true},"year_low":{"type":"numeric","from":"yearLow","min":0,"max":10000000,"nullable":true},"market_cap":{"type":"numeric","from":"marketCap","min":0,"max":1000000000000000,"nullable":true},"price_avg_50":{"type":"numeric","from":"priceAvg50","min":0,"max":10000000,"nullable":true},"price_avg_200":{"type":"numeric","from":"priceAvg200","min":0,"max":10000000,"nullable":true},"exchange":{"type":"text","max_length":50},"open":{"type":"numeric","min":0,"max":10000000,"nullable":true},"previous_close":{"type":"numeric","from":"previousClose","min":0,"max":10000000,"nullable":true},"timestamp":{"type":"bigint","min":1}},"sample":{"key":"AAPL","recorded":"2026-07-22","body":"[{\"symbol\": \"AAPL\", \"name\": \"Apple Inc.\", \"price\": 231.4, \"changePercentage\": 0.85, \"change\": 1.95, \"volume\": 41237893, \"dayLow\": 229.12, \"dayHigh\": 232.05, \"yearHigh\": 260.1, \"yearLow\": 169.21, \"marketCap\": 3441718000000, \"priceAvg50\": 224.731, \"priceAvg200\": 221.18, \"exchange\": \"NASDAQ\", \"open\": 229.5, \"previousClose\": 229.45, \"timestamp\": 1784750401}]\n"}},"columns":[{"name":"name","type":"text","nullable":true,"key":false,"bounds":{"max_length":300}},{"name":"price","type":"numeric","nullable":false,"key":false,"bounds":{"min":"0","max":"10000000","above_min":true}},{"name":"change_percentage","type":"numeric","nullable":false,"key":false,"bounds":{"min":"-100","max":"1000000"}},{"name":"change","type":"numeric","nullable":false,"key":false,"bounds":{"min":"-10000000","max":"10000000"}},{"name":"volume","type":"numeric","nullable":true,"key":false,"bounds":{"min":"0","max":"10000000000000"}},{"name":"day_low","type":"numeric","nullable":false,"key":false,"bounds":{"min":"0","max":"10000000"}},{"name":"day_high","type":"numeric","nullable":false,"key":false,"bounds":{"min":"0","max":"10000000"}},{"name":"year_high","type":"numeric","nullable":true,"key":false,"bounds":{"min":"0","max":"10000000"}},{"name":"year_low","type":"numeric","nullable":true,"key":false,"bounds":{"min":"0","max":"10000000"}},{"name":"market_cap","type":"numeric","nullable":true,"key":false,"bounds":{"min":"0","max":"1000000000000000"}},{"name":"price_avg_50","type":"numeric","nullable":true,"key":false,"bounds":{"min":"0","max":"10000000"}},{"name":"price_avg_200","type":"numeric","nullable":true,"key":false,"bounds":{"min":"0","max":"10000000"}},{"name":"exchange","type":"text","nullable":false,"key":false,"bounds":{"max_length":50}},{"name":"open","type":"numeric","nullable":true,"key":false,"bounds":{"min":"0","max":"10000000"}},{"name":"previous_close","type":"numeric","nullable":true,"key":false,"bounds":{"min":"0","max":"10000000"}},{"name":"timestamp","type":"bigint","nullable":false,"key":false,"bounds":{"min":"1"}}]}');
SELECT livewell.open_session('11111111-1111-4111-8111-111111111111', 'ann');
SELECT livewell.subscribe('11111111-1111-4111-8111-111111111111', 'ann', ARRAY['quote', 'quote'], ARRAY['AAPL', 'MSFT']);
SELECT livewell.set_ttl('quote', 'AAPL', interval '5 minutes');
SELECT livewell.add_universe('quote', ARRAY['IBM']);
UPDATE livewell.ledger SET fetched_at = livewell.now(), checked_at = livewell.now(), changed_at = livewell.now(), version = 1, status_version = 1 WHERE key = 'AAPL';
SELECT livewell.create_key('KeyOfAMachine', sha256('secret of nobody'), 'key', 'reports', ARRAY['view'], ARRAY['quote'], false, NULL);
SELECT livewell.create_key('LoginOfAnn', sha256('secret of ann'), 'login', 'login link', ARRAY['view'], NULL, false, 3600);
SELECT livewell.revoke_key('LoginOfAnn');
SELECT livewell.declare_schedule('nightly', 'interval', NULL, NULL, interval '1 day', NULL, 'once', interval '1 hour', false, true);
SELECT livewell.begin_run('nightly', 'old', s.due_at, s.due_at, s.due_at + interval '1 day', interval '1 day', 0, NULL, interval '1 minute') FROM livewell.schedule s WHERE s.name = 'nightly';
SELECT livewell.observe_alerts('breaker_open', 'P1', interval '5 minutes', ARRAY['api'], ARRAY['the breaker of api is open']);
SELECT livewell.audit_act('key:ann', 'http 192.0.2.7', 'queue.pause', 'mail', '{}', 'true', NULL, NULL, 1);
SELECT livewell.silence_alerts('breaker_open', 'api', 7200, 'key:ann');
-- Events of four keys: one delivered, one refused (its key is parked), one behind it, one in flight, one waiting.
SELECT livewell.ensure_event_days(2);
SELECT livewell.declare_topic('orders.created', '{"on_dead": "park"}');
SELECT livewell.declare_sink('old', 'null', '{orders.*}', '{"attempts": 1}');
SELECT livewell.emit_events(array_agg('orders.created'::text), array_agg(format('{"n": %s}', n)), array_agg(k), array_agg('acme'::text))
FROM unnest(ARRAY['a', 'b', 'c', 'b', 'd']) WITH ORDINALITY AS o (k, n);
CREATE TEMPORARY TABLE relaying AS SELECT livewell.register_relay('old', 'relay of 0.9.0', '0.9.0', 45) AS id;
CREATE TEMPORARY TABLE flown AS SELECT e.number FROM relaying r, livewell.exchange_events(r.id, '{}', '{}', '{}', '{}', '{}', 3) AS e WHERE e.answer = 'event';
SELECT e.answer FROM relaying r, livewell.exchange_events(r.id, ARRAY[1, 2], ARRAY['delivered', 'refused'], ARRAY[NULL, 'no'], ARRAY[NULL, NULL]::float8[], ARRAY[3], 0) AS e;
SELECT livewell.see_event('billing', 'an event that was seen');
SELECT livewell.resolve_contact('acme', '{email,external_id}', '{ann@example.com,7}');
SELECT livewell.resolve_contact('acme', '{phone}', '{+33612345678}');
SELECT livewell.resolve_contact('acme', '{email,phone}', '{ann@example.com,+33612345678}');
