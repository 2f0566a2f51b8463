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

-- ── what an operator may change without the owner: times to live of types and keys, when a type is refreshed by schedule, the universe, and whether something is refreshed at all ──
GRANT SELECT, INSERT, UPDATE ON livewell.ledger, livewell.universe TO livewell_operate;
GRANT UPDATE (paused_at, parked_reason) ON livewell.data_type TO livewell_operate;
GRANT UPDATE (paused_at) ON livewell.upstream TO livewell_operate;
GRANT EXECUTE ON FUNCTION livewell.set_ttl, livewell.clear_ttl, livewell.add_universe, livewell.deactivate_universe, livewell.pause_type, livewell.pause_upstream, livewell.change_type, livewell.redue_type TO livewell_operate;
GRANT SELECT ON livewell.ledger TO livewell_hub, livewell_readonly;

-- Verdicts, for whoever may read the rows they are computed from.
GRANT SELECT ON livewell.exchange_session TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.stale_at, livewell.next_due, livewell.is_stale, livewell.verdict, livewell.verdict_turns_at TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;

-- Why a key is as it is, and what is possible: read-only, for whoever sees all viewers and jobs. Operators' pools answer viewers too, one key at a time, and say less.
GRANT EXECUTE ON FUNCTION livewell.why_key, livewell.key_trouble, livewell.plan_state, livewell.expected_size, livewell.count_viewers, livewell.watched_keys, livewell.dispatch_room TO livewell_worker, livewell_operate, livewell_readonly;

-- Viewers: whoever serves them, and other clients. These run as the owner, see their headers.
GRANT EXECUTE ON FUNCTION livewell.open_session, livewell.heartbeat_session, livewell.close_session, livewell.subscribe, livewell.unsubscribe, livewell.read_through, livewell.read_key
    TO livewell_api, livewell_worker;
REVOKE EXECUTE ON FUNCTION livewell.count_viewers FROM livewell_api;
GRANT EXECUTE ON FUNCTION livewell.count_viewers TO livewell_worker, livewell_operate;

-- The due check and the sweep.
GRANT SELECT ON livewell.upstream, livewell.data_type TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;
GRANT UPDATE (cron_due_at, cron_cursor) ON livewell.data_type TO livewell_worker;
GRANT SELECT, INSERT, UPDATE ON livewell.ledger TO livewell_worker;
GRANT SELECT, DELETE, UPDATE ON livewell.viewer_session, livewell.viewer TO livewell_worker;
GRANT SELECT, DELETE ON livewell.subscription TO livewell_worker;
GRANT SELECT ON livewell.universe TO livewell_worker;
GRANT EXECUTE ON FUNCTION
    livewell.sweep_sessions, livewell.unpark, livewell.judge_keys, livewell.dispatch_room, livewell.may_probe, livewell.due_candidates, livewell.park_keys, livewell.fail_dead, livewell.ready_keys,
    livewell.enqueue_refreshes, livewell.dispatch_due, livewell.drop_refreshes, livewell.dispatch_scheduled, livewell.plan_cron, livewell.redue_type, livewell.list_walks, livewell.show_walk, livewell.record_walk,
    livewell.sync_walks, livewell.walk_held, livewell.begin_walk
    TO livewell_worker;
GRANT SELECT ON livewell.ledger, livewell.universe TO livewell_readonly, livewell_operate;
GRANT SELECT, INSERT, UPDATE, DELETE ON livewell.session_share TO livewell_worker;
GRANT EXECUTE ON FUNCTION livewell.free_sessions TO livewell_worker;

GRANT EXECUTE ON FUNCTION livewell.viewers_of, livewell.classify_keys, livewell.recount_viewers, livewell.read_throttle TO livewell_worker;

-- Storing and reading. The worker is the only one that writes values; of the registry it may change one thing: that a type is parked because the plan does not include its endpoint (parked_reason is no
-- part of the definition, and a column grant is narrower than a function that runs as the owner).
GRANT UPDATE (parked_reason) ON livewell.data_type TO livewell_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON livewell.ledger TO livewell_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON livewell.refresh_count TO livewell_worker;
GRANT SELECT, INSERT, UPDATE ON livewell.viewer TO livewell_worker;
-- Budgets of strangers, and housekeeping. The salt is for functions that run as the owner, and for readers who come with a name of their own.
GRANT SELECT, INSERT, UPDATE, DELETE ON livewell.cold_budget TO livewell_worker;
GRANT EXECUTE ON FUNCTION livewell.take_cold, livewell.prune_refresh TO livewell_worker;
GRANT SELECT ON livewell.ledger TO livewell_hub, livewell_operate, livewell_readonly;
GRANT SELECT ON livewell.refresh_count TO livewell_operate, livewell_readonly;
GRANT EXECUTE ON FUNCTION
    livewell.store_refreshes, livewell.judge_refresh, livewell.move_ledger, livewell.count_refreshes, livewell.demand_refresh, livewell.refresh_wanted, livewell.spend_cold_read, livewell.refresh_job, livewell.refresh_payloads,
    livewell.read_readings
    TO livewell_worker;

-- The hub: what changed, what it looks like now, and who of this process's clients is subscribed to it. Workers too, for app.get and app.watch.
GRANT SELECT ON livewell.viewer_session, livewell.subscription TO livewell_hub;
GRANT EXECUTE ON FUNCTION livewell.read_readings, livewell.changed_since, livewell.session_keys, livewell.keys_of_sessions, livewell.session_hash, livewell.public_key_of TO livewell_hub;
GRANT EXECUTE ON FUNCTION livewell.changed_since TO livewell_worker;

-- The system state counts sessions, viewers and subscriptions; it needs to know neither which keys nor which sessions are whose (L4). Until 0.7.0 these roles could read all of it.
-- How many look at which key they learn from count_viewers and watched_keys.
REVOKE SELECT ON livewell.viewer_session, livewell.subscription, livewell.viewer FROM livewell_operate, livewell_readonly;
GRANT SELECT (user_id, seen_at) ON livewell.viewer_session TO livewell_operate, livewell_readonly;
GRANT SELECT (data_type) ON livewell.subscription TO livewell_operate, livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.sample_refresh, livewell.state_refresh TO livewell_operate, livewell_worker, livewell_readonly;

-- ── row security: functions that run as the owner see and write the rows of one user, the one they were called for, whatever their own words say ──
-- Whoever is a login of their own and a member of the owner could switch this off, so it does not hold them; a superuser it never holds. Roles that serve everybody (workers, the hub, operators)
-- see all rows, and may do with them what is granted above. A migration of these rows has to run as a login, not as livewell_owner.
DO $rows$
DECLARE
    v_table     text;
    v_policy    text;
    v_role      text;
    v_using     text;
BEGIN
    FOREACH v_table IN ARRAY ARRAY['viewer', 'viewer_session', 'subscription'] LOOP
        IF NOT (SELECT c.relrowsecurity AND c.relforcerowsecurity FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass('livewell.' || v_table)) THEN
            EXECUTE format('ALTER TABLE livewell.%I ENABLE ROW LEVEL SECURITY', v_table);
            EXECUTE format('ALTER TABLE livewell.%I FORCE ROW LEVEL SECURITY', v_table);
        END IF;
        FOR v_policy, v_role, v_using IN VALUES
            ('own', 'livewell_owner', $$user_id = nullif(current_setting('livewell.user_id', true), '')$$),
            ('owner_login', 'livewell_owner', $$current_user <> 'livewell_owner'$$),
            ('worker', 'livewell_worker', 'true'),
            ('operate', 'livewell_operate', 'true'),
            ('hub', 'livewell_hub', 'true'),
            ('readonly', 'livewell_readonly', 'true')
        LOOP
            -- One per role, and only what is missing: a role that was lost took its policy along.
            IF NOT EXISTS (SELECT FROM pg_catalog.pg_policy p WHERE p.polrelid = pg_catalog.to_regclass('livewell.' || v_table) AND p.polname = v_policy) THEN
                EXECUTE format('CREATE POLICY %I ON livewell.%I TO %I USING (%s)', v_policy, v_table, v_role, v_using);
            END IF;
        END LOOP;
        -- Functions that only count see everybody's rows: livewell.counts is on while they count (count_all). Who sets it outside gains nothing, for whatever acts for a user names the user before it
        -- reads, and then this does not hold.
        IF v_table <> 'viewer' AND NOT EXISTS (SELECT FROM pg_catalog.pg_policy p WHERE p.polrelid = pg_catalog.to_regclass('livewell.' || v_table) AND p.polname = 'counted') THEN
            EXECUTE format('CREATE POLICY counted ON livewell.%I FOR SELECT TO livewell_owner USING (%s)', v_table,
                           $$current_setting('livewell.counts', true) = 'on' AND coalesce(current_setting('livewell.user_id', true), '') = ''$$);
        END IF;
    END LOOP;
END
$rows$;
