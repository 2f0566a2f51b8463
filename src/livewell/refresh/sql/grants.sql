-- Who may do what with the refresh engine: what each role may do with each object.
-- Re-applied when this file changes; skipped where roles cannot be created.

-- ── rights that earlier releases gave: GRANT only adds, so first what is to go ──
REVOKE EXECUTE ON FUNCTION livewell.count_viewers FROM livewell_api;
-- Until 0.7.0 these roles could read all of it.
REVOKE SELECT ON livewell.viewer_session, livewell.subscription, livewell.viewer
    FROM livewell_operate, livewell_readonly;

-- ── tables ──
-- r SELECT, a INSERT, w UPDATE, d DELETE. livewell_api has no table rights at all.
-- Everybody reads the registry and only the owner writes it (apply_upstream, apply_type), but for a
-- few columns. Operators pause and resume. Workers keep the place of a walk, and park a type that
-- the plan does not include: parked_reason is no part of the definition, and a column is narrower
-- than a function that runs as the owner.
-- Workers alone write values, and the budgets of strangers.
-- The system state counts sessions, viewers and subscriptions; its roles need to know neither which
-- keys nor which sessions are whose (L4). How many look at which key they learn from count_viewers
-- and watched_keys.
DO $tables$
DECLARE
    c_rights    CONSTANT jsonb := '{"r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE"}';
    v_table     text[];                 -- its name, and the columns if not all
    v_role      text;
    v_right     text;
BEGIN
    FOR v_table, v_role, v_right IN
        SELECT string_to_array(m.name, ' ('), c.role, r FROM (VALUES
            -- table (columns)                      worker   hub      operate  readonly
            ('upstream',                              'r',     'r',     'r',     'r'),
            ('upstream (paused_at)',                  '',      '',      'w',     ''),
            ('data_type',                             'r',     'r',     'r',     'r'),
            ('data_type (cron_due_at, cron_cursor)',  'w',     '',      '',      ''),
            ('data_type (paused_at)',                 '',      '',      'w',     ''),
            ('data_type (parked_reason)',             'w',     '',      'w',     ''),
            ('universe',                              'r',     'r',     'raw',   'r'),
            ('exchange_session',                      'r',     'r',     'r',     'r'),
            ('ledger',                                'rawd',  'r',     'raw',   'r'),
            ('refresh_count',                         'rawd',  '',      'r',     'r'),
            ('refresh_event',                         'rawd',  '',      'r',     'r'),
            ('viewer',                                'rawd',  '',      '',      ''),
            ('viewer_session',                        'rwd',   'r',     '',      ''),
            ('viewer_session (user_id, seen_at)',     '',      '',      'r',     'r'),
            ('subscription',                          'rd',    'r',     '',      ''),
            ('subscription (data_type)',              '',      '',      'r',     'r'),
            ('session_share',                         'rawd',  '',      '',      ''),
            ('cold_budget',                           'rawd',  '',      '',      '')
        ) AS m (name, worker, hub, operate, readonly)
        CROSS JOIN LATERAL (VALUES
            ('worker', m.worker), ('hub', m.hub), ('operate', m.operate), ('readonly', m.readonly)
        ) AS c (role, rights)
        CROSS JOIN LATERAL regexp_split_to_table(c.rights, '') AS r
        WHERE c.rights <> ''
    LOOP
        EXECUTE format(
            'GRANT %s %s ON livewell.%I TO %I', c_rights ->> v_right, '(' || v_table[2], v_table[1],
            'livewell_' || v_role);
    END LOOP;
END
$tables$;

-- ── functions ──
-- x EXECUTE. What livewell_api may call runs as the owner, see the headers; it serves viewers and
-- other clients. Of a function that is not here only the owner's functions make use.
DO $functions$
DECLARE
    v_function  text;
    v_role      text;
BEGIN
    FOR v_function, v_role IN
        SELECT m.name, c.role FROM (VALUES
            -- function              api  work hub  oper read
            -- registry
            ('add_universe',          '',  '',  '',  'x', ''),
            ('bounds_statement',      '',  'x', 'x', 'x', 'x'),
            ('bounds_widened',        '',  'x', 'x', 'x', 'x'),
            ('change_type',           '',  '',  '',  'x', ''),
            ('clear_ttl',             '',  '',  '',  'x', ''),
            ('column_bounds',         '',  'x', 'x', 'x', 'x'),
            ('column_type',           '',  'x', 'x', 'x', 'x'),
            ('compare_bounds',        '',  'x', 'x', 'x', 'x'),
            ('compare_table',         '',  'x', 'x', 'x', 'x'),
            ('create_statement',      '',  'x', 'x', 'x', 'x'),
            ('deactivate_universe',   '',  '',  '',  'x', ''),
            ('list_ttls',             '',  'x', 'x', 'x', 'x'),
            ('list_universe',         '',  'x', 'x', 'x', 'x'),
            ('pause_type',            '',  '',  '',  'x', ''),
            ('pause_upstream',        '',  '',  '',  'x', ''),
            ('redue_type',            '',  'x', '',  'x', ''),
            ('registered_type',       '',  'x', 'x', 'x', 'x'),
            ('set_ttl',               '',  '',  '',  'x', ''),
            -- subscribe
            ('close_session',         'x', 'x', '',  '',  ''),
            ('count_viewers',         '',  'x', '',  'x', 'x'),
            ('free_sessions',         '',  'x', '',  '',  ''),
            ('heartbeat_session',     'x', 'x', '',  '',  ''),
            ('key_fits',              '',  'x', 'x', 'x', 'x'),
            ('keys_of_sessions',      '',  '',  'x', '',  ''),
            ('open_session',          'x', 'x', '',  '',  ''),
            ('public_key_of',         '',  '',  'x', '',  ''),
            ('recount_viewers',       '',  'x', '',  '',  ''),
            ('session_hash',          '',  '',  'x', '',  ''),
            ('session_keys',          '',  '',  'x', '',  ''),
            ('spend_cold_read',       '',  'x', '',  '',  ''),
            ('subscribe',             'x', 'x', '',  '',  ''),
            ('sweep_sessions',        '',  'x', '',  '',  ''),
            ('take_cold',             '',  'x', '',  '',  ''),
            ('unpark',                '',  'x', '',  '',  ''),
            ('unsubscribe',           'x', 'x', '',  '',  ''),
            ('viewers_of',            '',  'x', '',  '',  ''),
            ('watched_keys',          '',  'x', '',  'x', 'x'),
            -- read
            ('is_stale',              '',  'x', 'x', 'x', 'x'),
            ('judge_keys',            '',  'x', '',  '',  ''),
            ('read_key',              'x', 'x', '',  'x', ''),
            ('read_throttle',         '',  'x', '',  '',  ''),
            ('read_through',          'x', 'x', '',  '',  ''),
            ('stale_at',              '',  'x', 'x', 'x', 'x'),
            ('verdict',               '',  'x', 'x', 'x', 'x'),
            -- due
            ('choose_refreshes',      '',  'x', '',  '',  ''),
            ('classify_keys',         '',  'x', '',  '',  ''),
            ('credential_room',       '',  'x', '',  'x', 'x'),
            ('demand_refresh',        '',  'x', '',  '',  ''),
            ('dispatch_due',          '',  'x', '',  '',  ''),
            ('dispatch_room',         '',  'x', '',  'x', 'x'),
            ('dispatch_scheduled',    '',  'x', '',  '',  ''),
            ('drop_refreshes',        '',  'x', '',  '',  ''),
            ('due_check_name',        '',  'x', '',  'x', 'x'),
            ('due_candidates',        '',  'x', '',  '',  ''),
            ('enqueue_refreshes',     '',  'x', '',  '',  ''),
            ('expected_size',         '',  'x', '',  'x', 'x'),
            ('fail_dead',             '',  'x', '',  '',  ''),
            ('key_trouble',           '',  'x', '',  'x', 'x'),
            ('list_refresh_queues',   '',  'x', '',  'x', 'x'),
            ('list_walks',            '',  'x', '',  '',  ''),
            ('may_probe',             '',  'x', '',  '',  ''),
            ('next_due',              '',  'x', 'x', 'x', 'x'),
            ('order_refreshes',       '',  'x', '',  '',  ''),
            ('park_keys',             '',  'x', '',  '',  ''),
            ('park_unwatched',        '',  'x', '',  '',  ''),
            ('plan_cron',             '',  'x', '',  '',  ''),
            ('queue_chosen',          '',  'x', '',  '',  ''),
            ('ready_keys',            '',  'x', '',  '',  ''),
            ('record_walk',           '',  'x', '',  '',  ''),
            ('walk_held',             '',  'x', '',  '',  ''),
            ('sync_walks',            '',  'x', '',  '',  ''),
            ('begin_walk',            '',  'x', '',  '',  ''),
            ('refresh_jobs',          '',  'x', '',  '',  ''),
            ('refresh_queue',         '',  'x', '',  'x', 'x'),
            ('refresh_wanted',        '',  'x', '',  '',  ''),
            ('sample_refresh',        '',  'x', '',  'x', 'x'),
            ('show_walk',             '',  'x', '',  '',  ''),
            -- store
            ('change_questions',      '',  'x', '',  '',  ''),
            ('count_refreshes',       '',  'x', '',  '',  ''),
            ('judge_refresh',         '',  'x', '',  '',  ''),
            ('keep_answers',          '',  'x', '',  '',  ''),
            ('move_ledger',           '',  'x', '',  '',  ''),
            ('own_results',           '',  'x', '',  '',  ''),
            ('refresh_reasons',       '',  'x', '',  'x', 'x'),
            ('settle_refreshes',      '',  'x', '',  '',  ''),
            ('store_refreshes',       '',  'x', '',  '',  ''),
            ('store_values',          '',  'x', '',  '',  ''),
            ('write_values',          '',  'x', '',  '',  ''),
            -- push
            ('changed_since',         '',  'x', 'x', '',  ''),
            ('read_readings',         '',  'x', 'x', '',  ''),
            ('read_values',           '',  'x', 'x', 'x', 'x'),
            ('verdict_turns_at',      '',  'x', 'x', 'x', 'x'),
            -- operate
            ('count_failing',         '',  '',  '',  'x', 'x'),
            ('list_type_keys',        '',  '',  '',  'x', 'x'),
            ('list_answers',          '',  '',  '',  'x', 'x'),
            ('list_refresh_hours',    '',  '',  '',  'x', 'x'),
            ('list_watched_keys',     '',  '',  '',  'x', 'x'),
            ('oldest_due',            '',  '',  '',  'x', 'x'),
            ('plan_groups',           '',  'x', '',  'x', 'x'),
            ('plan_state',            '',  'x', '',  'x', 'x'),
            ('plan_types',            '',  'x', '',  'x', 'x'),
            ('plan_upstreams',        '',  'x', '',  'x', 'x'),
            ('prune_refresh',         '',  'x', '',  '',  ''),
            ('refresh_key',           '',  '',  '',  'x', ''),
            ('sample_watched',        '',  'x', '',  'x', 'x'),
            ('show_key',              '',  '',  '',  'x', 'x'),
            ('state_refresh',         '',  'x', '',  'x', 'x'),
            ('why_key',               '',  'x', '',  'x', 'x'),
            ('why_refresh',           '',  'x', '',  'x', 'x')
        ) AS m (name, api, worker, hub, operate, readonly)
        CROSS JOIN LATERAL (VALUES
            ('api', m.api), ('worker', m.worker), ('hub', m.hub), ('operate', m.operate),
            ('readonly', m.readonly)
        ) AS c (role, granted)
        WHERE c.granted = 'x'
    LOOP
        EXECUTE format(
            'GRANT EXECUTE ON FUNCTION livewell.%I TO %I', v_function, 'livewell_' || v_role);
    END LOOP;
END
$functions$;

-- ── the data: one table per type ──
REVOKE ALL ON SCHEMA livewell_data FROM PUBLIC;
GRANT USAGE ON SCHEMA livewell_data
    TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;
ALTER DEFAULT PRIVILEGES FOR ROLE livewell_owner IN SCHEMA livewell_data
    GRANT SELECT ON TABLES TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;
ALTER DEFAULT PRIVILEGES FOR ROLE livewell_owner IN SCHEMA livewell_data
    GRANT INSERT, UPDATE, DELETE ON TABLES TO livewell_worker;
GRANT SELECT ON ALL TABLES IN SCHEMA livewell_data
    TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;
GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA livewell_data TO livewell_worker;

-- ── row security ──
-- Functions that run as the owner see and write the rows of one user, the one they were called for,
-- whatever their own words say. Whoever is a login of their own and a member of
-- the owner could switch this off, so it does not hold them; a superuser it never holds. Roles that
-- serve everybody (workers, the hub, operators) see all rows, and may do with them what is granted
-- above. A migration of these rows has to run as a login, not as livewell_owner.
DO $rows$
DECLARE
    v_table     text;
    v_policy    text;
    v_role      text;
    v_using     text;
BEGIN
    FOREACH v_table IN ARRAY ARRAY['viewer', 'viewer_session', 'subscription'] LOOP
        IF NOT (
            SELECT c.relrowsecurity AND c.relforcerowsecurity FROM pg_catalog.pg_class c
            WHERE c.oid = pg_catalog.to_regclass('livewell.' || v_table)) THEN
            EXECUTE format('ALTER TABLE livewell.%I ENABLE ROW LEVEL SECURITY', v_table);
            EXECUTE format('ALTER TABLE livewell.%I FORCE ROW LEVEL SECURITY', v_table);
        END IF;
        FOR v_policy, v_role, v_using IN VALUES
            ('own', 'livewell_owner',
             $$user_id = nullif(current_setting('livewell.user_id', true), '')$$),
            ('owner_login', 'livewell_owner', $$current_user <> 'livewell_owner'$$),
            ('worker', 'livewell_worker', 'true'),
            ('operate', 'livewell_operate', 'true'),
            ('hub', 'livewell_hub', 'true'),
            ('readonly', 'livewell_readonly', 'true')
        LOOP
            -- One per role, and only what is missing: a role that was lost took its policy along.
            IF NOT EXISTS (
                SELECT FROM pg_catalog.pg_policy p
                WHERE p.polrelid = pg_catalog.to_regclass('livewell.' || v_table)
                  AND p.polname = v_policy) THEN
                EXECUTE format(
                    'CREATE POLICY %I ON livewell.%I TO %I USING (%s)', v_policy, v_table, v_role,
                    v_using);
            END IF;
        END LOOP;
        -- Functions that only count see everybody's rows: livewell.counts is on while they count
        -- (count_all). Who sets it outside gains nothing, for whatever acts for a user names the
        -- user before it reads, and then this does not hold.
        IF v_table <> 'viewer'
           AND NOT EXISTS (
               SELECT FROM pg_catalog.pg_policy p
               WHERE p.polrelid = pg_catalog.to_regclass('livewell.' || v_table)
                 AND p.polname = 'counted') THEN
            EXECUTE format(
                'CREATE POLICY counted ON livewell.%I FOR SELECT TO livewell_owner USING (%s)',
                v_table,
                $$current_setting('livewell.counts', true) = 'on'$$
                || $$ AND coalesce(current_setting('livewell.user_id', true), '') = ''$$);
        END IF;
    END LOOP;
END
$rows$;
