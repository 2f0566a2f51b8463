-- What a failover must not undo. Never edited after release; changes are a new numbered file.

-- Every promotion of a standby begins a new timeline. What the old primary handed out last may never have reached the standby: numbers are raised before anything is handed out again (functions/raise_fences.sql).
-- Kept in sequences, so that whoever hands out numbers looks without reading a table.
CREATE SEQUENCE livewell.timeline_seq AS bigint;
COMMENT ON SEQUENCE livewell.timeline_seq IS 'Its last value is the timeline of the server when numbers were last known to be right.';
SELECT setval('livewell.timeline_seq', ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint);
CREATE SEQUENCE livewell.failover_seq AS bigint;
COMMENT ON SEQUENCE livewell.failover_seq IS 'How often numbers were raised after a failover.';
