-- Who may do what with limiters. Re-applied when this file changes; skipped where roles cannot be created.
GRANT SELECT, INSERT, UPDATE ON livewell.limiter, livewell.limiter_credential TO livewell_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON livewell.limiter_grant, livewell.limiter_flight, livewell.limiter_usage, livewell.limiter_estimate, livewell.limiter_calls, livewell.limiter_failing, livewell.usage_settled TO livewell_worker;
GRANT EXECUTE ON FUNCTION
    livewell.declare_limiter, livewell.budget_since, livewell.limiter_room, livewell.grant_calls, livewell.end_calls, livewell.book_usage, livewell.book_calls, livewell.mark_keys, livewell.book_probe, livewell.open_breaker,
    livewell.observe_limiter, livewell.prune_limits
    TO livewell_worker;

-- An operator's cancel settles a job, and with it what the job had reserved.
GRANT SELECT, UPDATE ON livewell.limiter, livewell.limiter_credential TO livewell_operate;
GRANT SELECT, INSERT, UPDATE, DELETE ON livewell.limiter_grant, livewell.limiter_flight, livewell.limiter_usage, livewell.limiter_estimate, livewell.limiter_calls, livewell.limiter_failing, livewell.usage_settled TO livewell_operate;
GRANT EXECUTE ON FUNCTION livewell.budget_since, livewell.limiter_room, livewell.end_calls, livewell.book_usage, livewell.book_calls, livewell.mark_keys, livewell.book_probe, livewell.open_breaker TO livewell_operate;

GRANT SELECT ON livewell.limiter, livewell.limiter_credential, livewell.limiter_grant, livewell.limiter_flight, livewell.limiter_usage, livewell.limiter_estimate, livewell.limiter_calls, livewell.limiter_failing, livewell.usage_settled TO livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.budget_since, livewell.limiter_room TO livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.limiter_trouble TO livewell_worker, livewell_operate, livewell_readonly;
