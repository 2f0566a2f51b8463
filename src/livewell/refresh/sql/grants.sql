-- Who may do what with the refresh engine. Re-applied when this file changes; skipped where roles cannot be created.

-- ── the registry: everybody reads, only the owner writes; apply_upstream() and apply_type() are the owner's alone ──
GRANT SELECT ON livewell.upstream, livewell.data_type, livewell.universe TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;
GRANT EXECUTE ON FUNCTION
    livewell.column_type, livewell.column_bounds, livewell.bounds_widened, livewell.bounds_statement, livewell.create_statement, livewell.compare_table, livewell.registered_type,
    livewell.key_fits, livewell.read_values, livewell.list_ttls, livewell.list_universe
    TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;

-- ── the data: one table per type ──
REVOKE ALL ON SCHEMA livewell_data FROM PUBLIC;
GRANT USAGE ON SCHEMA livewell_data TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;
ALTER DEFAULT PRIVILEGES FOR ROLE livewell_owner IN SCHEMA livewell_data GRANT SELECT ON TABLES TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;
ALTER DEFAULT PRIVILEGES FOR ROLE livewell_owner IN SCHEMA livewell_data GRANT INSERT, UPDATE, DELETE ON TABLES TO livewell_worker;
GRANT SELECT ON ALL TABLES IN SCHEMA livewell_data TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;
GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA livewell_data TO livewell_worker;
GRANT EXECUTE ON FUNCTION livewell.write_values TO livewell_worker;

-- ── what an operator may change without the owner: times to live of keys, the universe, and whether something is refreshed at all ──
GRANT SELECT, INSERT, UPDATE ON livewell.ledger, livewell.universe TO livewell_operate;
GRANT UPDATE (paused_at, parked_reason) ON livewell.data_type TO livewell_operate;
GRANT UPDATE (paused_at) ON livewell.upstream TO livewell_operate;
GRANT EXECUTE ON FUNCTION livewell.set_ttl, livewell.clear_ttl, livewell.add_universe, livewell.deactivate_universe, livewell.pause_type, livewell.pause_upstream TO livewell_operate;
GRANT SELECT ON livewell.ledger TO livewell_hub, livewell_readonly;

-- Verdicts, for whoever may read the rows they are computed from.
GRANT SELECT ON livewell.exchange_session TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.stale_at, livewell.next_due, livewell.is_stale, livewell.verdict, livewell.verdict_turns_at TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;

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

-- Storing and reading. The worker is the only one that writes values; of the registry it may change one thing: that a type is parked because the plan does not include its endpoint (parked_reason is no
-- part of the definition, and a column grant is narrower than a function that runs as the owner).
GRANT UPDATE (parked_reason) ON livewell.data_type TO livewell_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON livewell.ledger TO livewell_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON livewell.refresh_count TO livewell_worker;
GRANT SELECT, INSERT, UPDATE ON livewell.viewer TO livewell_worker;
GRANT SELECT ON livewell.ledger TO livewell_hub, livewell_operate, livewell_readonly;
GRANT SELECT ON livewell.refresh_count TO livewell_operate, livewell_readonly;
GRANT EXECUTE ON FUNCTION
    livewell.store_refreshes, livewell.judge_refresh, livewell.move_ledger, livewell.count_refreshes, livewell.read_through, livewell.demand_refresh, livewell.refresh_wanted, livewell.spend_cold_read, livewell.refresh_job,
    livewell.read_changes
    TO livewell_worker;

-- The hub: what changed, what it looks like now, and who of this process's clients is subscribed to it. Workers too, for app.get and app.watch.
GRANT SELECT ON livewell.viewer_session, livewell.subscription TO livewell_hub;
GRANT EXECUTE ON FUNCTION livewell.read_changes, livewell.changed_since, livewell.session_keys TO livewell_hub;
GRANT EXECUTE ON FUNCTION livewell.changed_since TO livewell_worker;
