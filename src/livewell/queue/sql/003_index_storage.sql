-- How two indexes of the live table lie on disk. Never edited after release; changes are a new numbered file.

-- Every claim writes a job's row anew, and so a second entry into the primary key beside the first. Half-filled pages have room for it; full ones were split at every hundredth claim (9 B of WAL per job).
ALTER INDEX livewell.job_pkey SET (fillfactor = 50);

-- A worker's jobs all have the same entry but for where they are. Packing equal entries together only to unpack them when they are finished costs more than it saves here.
ALTER INDEX livewell.job_worker_idx SET (deduplicate_items = off);
