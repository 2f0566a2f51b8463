-- Who may do what with alerts. Re-applied when this file changes; skipped where roles cannot be created.
GRANT SELECT, INSERT, UPDATE, DELETE ON livewell.alert_rule, livewell.alert, livewell.alert_firing, livewell.alert_channel, livewell.notification, livewell.notification_attempt, livewell.alert_lasting
    TO livewell_worker;
GRANT EXECUTE ON FUNCTION
    livewell.observe_alerts, livewell.lasting, livewell.declare_channels, livewell.begin_attempt, livewell.settle_attempt, livewell.expire_attempts, livewell.prune_alerts,
    livewell.list_alerts, livewell.list_attempts, livewell.enable_channel
    TO livewell_worker;
GRANT EXECUTE ON FUNCTION livewell.redact(text) TO livewell_worker;

GRANT SELECT ON livewell.alert_rule, livewell.alert, livewell.alert_firing, livewell.alert_channel, livewell.notification, livewell.notification_attempt, livewell.alert_lasting
    TO livewell_operate, livewell_readonly;
GRANT UPDATE (disabled_at, quiet_until) ON livewell.alert_channel TO livewell_operate;
GRANT EXECUTE ON FUNCTION livewell.list_alerts, livewell.list_attempts TO livewell_operate, livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.enable_channel TO livewell_operate;
-- The system state.
GRANT EXECUTE ON FUNCTION livewell.state_alerts TO livewell_operate, livewell_worker, livewell_readonly;
