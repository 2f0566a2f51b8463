-- Who may do what with the registry and the data. Re-applied when anything in this package changes; skipped where roles cannot be created.

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

-- ── what an operator may change without the owner: times to live of keys, and the universe ──
GRANT SELECT, INSERT, UPDATE ON livewell.ledger, livewell.universe TO livewell_operate;
GRANT EXECUTE ON FUNCTION livewell.set_ttl, livewell.clear_ttl, livewell.add_universe, livewell.deactivate_universe TO livewell_operate;
GRANT SELECT ON livewell.ledger TO livewell_hub, livewell_readonly;
