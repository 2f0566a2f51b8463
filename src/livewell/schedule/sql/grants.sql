-- Who may do what with singletons. Re-applied when this file changes; skipped where roles cannot be created.
GRANT SELECT, INSERT, UPDATE ON livewell.singleton TO livewell_worker;
GRANT EXECUTE ON FUNCTION livewell.acquire_singleton, livewell.release_singleton, livewell.hold_singleton TO livewell_worker;
GRANT SELECT ON livewell.singleton TO livewell_operate, livewell_readonly;

-- The system state.
GRANT EXECUTE ON FUNCTION livewell.state_leases TO livewell_operate, livewell_worker, livewell_readonly;
