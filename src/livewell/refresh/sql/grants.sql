-- Who may do what with the refresh engine. Re-applied when this file changes; skipped where roles cannot be created.

-- Verdicts, for whoever may read the rows they are computed from.
GRANT SELECT ON livewell.exchange_session TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.stale_at, livewell.next_due, livewell.is_stale, livewell.verdict TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;

-- Storing and reading. The worker is the only one that writes values; of the registry it may change one thing: that a type is parked because the plan does not include its endpoint (parked_reason is no
-- part of the definition, and a column grant is narrower than a function that runs as the owner).
GRANT SELECT ON livewell.upstream, livewell.data_type TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;
GRANT UPDATE (parked_reason) ON livewell.data_type TO livewell_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON livewell.ledger TO livewell_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON livewell.refresh_count TO livewell_worker;
GRANT SELECT, INSERT, UPDATE ON livewell.viewer TO livewell_worker;
GRANT SELECT ON livewell.ledger TO livewell_hub, livewell_operate, livewell_readonly;
GRANT SELECT ON livewell.refresh_count TO livewell_operate, livewell_readonly;
GRANT EXECUTE ON FUNCTION
    livewell.store_refreshes, livewell.judge_refresh, livewell.move_ledger, livewell.count_refreshes, livewell.read_through, livewell.refresh_wanted, livewell.spend_cold_read, livewell.refresh_job,
    livewell.read_changes
    TO livewell_worker;
GRANT EXECUTE ON FUNCTION livewell.read_changes TO livewell_hub;
