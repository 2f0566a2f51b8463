-- Who may do what with the refresh engine. Re-applied when this file changes; skipped where roles cannot be created.

-- Verdicts, for whoever may read the rows they are computed from.
GRANT SELECT ON livewell.exchange_session TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.stale_at, livewell.next_due, livewell.is_stale, livewell.verdict TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;

-- Viewers: whoever serves them, and other clients. These run as the owner, see their headers.
GRANT EXECUTE ON FUNCTION livewell.open_session, livewell.heartbeat_session, livewell.close_session, livewell.subscribe, livewell.unsubscribe, livewell.count_viewers
    TO livewell_api, livewell_worker;

-- The due check and the sweep.
GRANT SELECT ON livewell.upstream, livewell.data_type TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;
GRANT UPDATE (cron_due_at, cron_cursor) ON livewell.data_type TO livewell_worker;
GRANT SELECT, INSERT, UPDATE ON livewell.ledger TO livewell_worker;
GRANT SELECT, DELETE, UPDATE ON livewell.viewer_session, livewell.viewer TO livewell_worker;
GRANT SELECT, DELETE ON livewell.subscription TO livewell_worker;
GRANT SELECT ON livewell.universe TO livewell_worker;
GRANT EXECUTE ON FUNCTION
    livewell.sweep_sessions, livewell.unpark, livewell.judge_keys, livewell.dispatch_room, livewell.due_candidates, livewell.park_keys, livewell.fail_dead, livewell.ready_keys,
    livewell.enqueue_refreshes, livewell.dispatch_due, livewell.dispatch_scheduled, livewell.plan_cron, livewell.redue_type
    TO livewell_worker;
GRANT SELECT ON livewell.ledger, livewell.viewer_session, livewell.subscription, livewell.viewer, livewell.universe TO livewell_readonly, livewell_operate;
