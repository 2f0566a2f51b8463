-- Who may do what with singletons, schedules and runs. Re-applied when this file changes; skipped where roles cannot be created.
GRANT SELECT, INSERT, UPDATE ON livewell.singleton TO livewell_worker;
GRANT EXECUTE ON FUNCTION livewell.acquire_singleton, livewell.release_singleton, livewell.hold_singleton TO livewell_worker;
GRANT SELECT ON livewell.singleton TO livewell_operate, livewell_readonly;

-- Workers run them.
GRANT SELECT, INSERT, UPDATE ON livewell.schedule, livewell.pulse TO livewell_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON livewell.run TO livewell_worker;
GRANT EXECUTE ON FUNCTION
    livewell.declare_schedule, livewell.plan_schedule, livewell.tick_schedules, livewell.crash_runs, livewell.record_pulse, livewell.skip_slots, livewell.take_run, livewell.begin_run,
    livewell.move_schedule, livewell.begin_asked_run, livewell.renew_run, livewell.finish_run, livewell.prune_runs, livewell.redact
    TO livewell_worker;

-- Operators look, ask, pause and remove; so do workers, for a program that has no other login.
GRANT SELECT, DELETE ON livewell.schedule, livewell.pulse TO livewell_operate;
GRANT UPDATE (asked_at, paused_at) ON livewell.schedule TO livewell_operate;
GRANT DELETE ON livewell.schedule, livewell.pulse TO livewell_worker;
GRANT SELECT ON livewell.run TO livewell_operate;
GRANT EXECUTE ON FUNCTION livewell.ask_run, livewell.pause_schedule, livewell.remove_schedule TO livewell_operate, livewell_worker;
GRANT EXECUTE ON FUNCTION
    livewell.list_schedules, livewell.list_runs, livewell.late_schedules, livewell.late_at, livewell.awaited_slot
    TO livewell_operate, livewell_worker, livewell_readonly;
GRANT SELECT ON livewell.schedule, livewell.run, livewell.pulse TO livewell_readonly;

-- The watchdog is told names and seconds, and comes without a login.
GRANT SELECT ON livewell.schedule, livewell.pulse, livewell.tick TO livewell_hub;
GRANT SELECT (schedule, state, due_at) ON livewell.run TO livewell_hub;
GRANT EXECUTE ON FUNCTION livewell.late_schedules, livewell.late_at, livewell.awaited_slot TO livewell_hub;

-- Workers carry on with open-ended runs.
GRANT EXECUTE ON FUNCTION
    livewell.declare_open_schedule, livewell.remove_open_schedule, livewell.open_run, livewell.fail_open_run,
    livewell.count_open_run
    TO livewell_worker;

-- The system state.
GRANT EXECUTE ON FUNCTION livewell.state_leases, livewell.state_schedules TO livewell_operate, livewell_worker, livewell_readonly;
