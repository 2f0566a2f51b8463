-- Who may look after the system. Re-applied when this file changes; skipped where roles cannot be created.
GRANT EXECUTE ON FUNCTION livewell.system_state TO livewell_operate, livewell_worker, livewell_readonly;
