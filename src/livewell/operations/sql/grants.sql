-- Who may look after the system. Re-applied when this file changes; skipped where roles cannot be created.
GRANT EXECUTE ON FUNCTION livewell.system_state TO livewell_operate, livewell_worker, livewell_readonly;

-- Alert rules read what workers may read, and move alerts.
GRANT EXECUTE ON FUNCTION
    livewell.alert_rules, livewell.rules_operations, livewell.evaluate_rule, livewell.rule_background_waiting, livewell.rule_breaker_open, livewell.rule_budget_nine_tenths, livewell.rule_budget_reached,
    livewell.rule_budget_three_quarters, livewell.rule_calls_near_limit, livewell.rule_queue_deep, livewell.rule_queue_stalled, livewell.rule_schedule_late, livewell.rule_singleton_held,
    livewell.rule_size_underestimated, livewell.rule_type_silent, livewell.rule_warning_rate, livewell.rule_key_overdue, livewell.rule_credential_missing, livewell.rule_upstream_silent, livewell.rule_watched_not_fresh, livewell.due_watched, livewell.limiter_subject, livewell.budgets_above, livewell.list_limiters
    TO livewell_worker;
GRANT EXECUTE ON FUNCTION livewell.alert_rules, livewell.rules_operations TO livewell_operate, livewell_readonly;

GRANT SELECT ON livewell.warning, livewell.data_type TO livewell_worker, livewell_operate, livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.list_warnings TO livewell_worker, livewell_operate, livewell_readonly;

-- What mends: as an operator, and by hand as a worker's login. Each locks and changes what its header says.
GRANT SELECT ON livewell.singleton, livewell.worker, livewell.fence_seq TO livewell_operate;
GRANT UPDATE (expires_at, fence) ON livewell.singleton TO livewell_operate;
GRANT UPDATE (paused_at) ON livewell.upstream TO livewell_worker;
GRANT EXECUTE ON FUNCTION livewell.resume_upstream, livewell.probe_breaker, livewell.close_breaker, livewell.take_singleton TO livewell_operate, livewell_worker;
