-- After a failover: raise every sequence of numbers above all that the old primary may have handed
-- out.
--
-- Called by: claim_jobs, lock_limited, take_call, reserve_job_ids, register_worker and
--            acquire_singleton, when the timeline is not the one we know; they look themselves,
--            because a look takes a microsecond.
-- A standby that is promoted may lack the last seconds of the old primary: fences, job ids and
-- worker numbers that somebody still holds would be handed out a second time, and an old result
-- would fit a new claim (F-B18).
-- 2^24 blocks: four hours of what may be missing, at a thousand claims a second.
-- Singletons number their terms themselves: after n failovers from n × 2^32 on (acquire_singleton).
-- A restored dump and an upgraded cluster have another timeline, too: raising once more than needed
-- costs nothing.
-- Not promised: an old primary that goes on answering beside the new one. Whoever promotes must see
-- to that.
-- Why SECURITY DEFINER: setval needs a right that would let a worker turn the numbers back.
CREATE OR REPLACE FUNCTION livewell.raise_fences()
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $$
DECLARE
    c_blocks CONSTANT bigint := 16777216;
    v_now pg_catalog.timestamptz;
    v_timeline bigint := (
        'x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
    )::bit(32)::bigint;
BEGIN
    -- one raises; the others wait for it and find it done
    PERFORM pg_catalog.pg_advisory_xact_lock(7091316);
    IF pg_catalog.pg_sequence_last_value('livewell.timeline_seq') = v_timeline THEN
        RETURN false;
    END IF;
    PERFORM pg_catalog.setval(
        'livewell.fence_seq', pg_catalog.nextval('livewell.fence_seq') + 16384 * c_blocks
    );
    PERFORM pg_catalog.setval(
        'livewell.job_id_seq', pg_catalog.nextval('livewell.job_id_seq') + 64 * c_blocks
    );
    PERFORM pg_catalog.setval(
        'livewell.worker_id_seq', pg_catalog.nextval('livewell.worker_id_seq') + c_blocks
    );
    PERFORM pg_catalog.nextval('livewell.failover_seq');
    v_now := livewell.now();
    PERFORM pg_catalog.setval('livewell.promoted_seq', (extract(epoch FROM v_now) * 1000)::bigint);
    -- last: whoever sees it may go on
    PERFORM pg_catalog.setval('livewell.timeline_seq', v_timeline);
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.raise_fences IS
    'Raises fences, job ids and worker numbers above what an old primary may have handed out, '
    'once for each timeline.';
REVOKE ALL ON FUNCTION livewell.raise_fences FROM PUBLIC;
