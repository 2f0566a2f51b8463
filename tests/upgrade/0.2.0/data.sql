-- Rows of every kind, as 0.2.0 left them; the clock of the rows is the clock of the restore.
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
SELECT livewell.register_worker('old', '0.2.0', ARRAY['mail', 'work'], ARRAY['task'], 10, 45);
CREATE TEMPORARY TABLE claimed AS SELECT c.id, c.fence FROM livewell.claim_jobs(1, ARRAY['mail'], 3) AS c;
SELECT livewell.finish_jobs(1, ARRAY[c.id], ARRAY[c.fence]) FROM claimed c WHERE c.id = 67;
SELECT livewell.finish_jobs(1, '{}', '{}', jsonb_build_array(jsonb_build_object('id', c.id, 'fence', c.fence, 'outcome', 'refused', 'reason', 'payload', 'error', 'no'))) FROM claimed c WHERE c.id = 68;
SELECT livewell.cancel_job(70);
SELECT livewell.add_stats(ARRAY['mail'], ARRAY['task'], ARRAY['succeeded'], ARRAY[1]::bigint[], ARRAY[5]::bigint[]);
SELECT livewell.warn('test', 'a warning of 0.2.0', 'sample');
SELECT livewell.maintain(1, 1, 30);
SELECT livewell.declare_limiter('api', '{"rate_calls": 300, "rate_seconds": 60, "budget_units": 1000000, "budget_unit": "bytes", "budget_seconds": 86400, "breaker_failures": 10}', ARRAY['main', 'spare']);
SELECT livewell.observe_limiter('api', 'main', 250, NULL, NULL, NULL);
SELECT livewell.create_batch(192, NULL, NULL, NULL);
