-- Who may do what with the refresh engine. Re-applied when this file changes; skipped where roles cannot be created.

-- Verdicts, for whoever may read the rows they are computed from.
GRANT SELECT ON livewell.exchange_session TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;
GRANT EXECUTE ON FUNCTION livewell.stale_at, livewell.next_due, livewell.is_stale, livewell.verdict TO livewell_worker, livewell_hub, livewell_operate, livewell_readonly;
