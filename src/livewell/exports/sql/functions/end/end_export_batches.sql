-- End those of these batches of which every export has ended, and enqueue their follow-ups.
--
-- Called by: end_export, finish_export, insert_export_batch; all of them hold the user's lock, and
--            all exports of a batch are of one user: nobody else counts at the same time.
-- Index:     export_batch_pkey, export_member_pkey, export_pkey
CREATE OR REPLACE FUNCTION livewell.end_export_batches(p_ids uuid[], p_now timestamptz)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_follow pg_catalog.jsonb;
BEGIN
    IF cardinality(p_ids) = 0 THEN
        RETURN;
    END IF;
    WITH ended AS (
        UPDATE livewell.export_batch b
        SET ended_at = p_now
        WHERE b.id = ANY (p_ids)
            AND b.ended_at IS NULL
            AND NOT EXISTS (
                SELECT FROM livewell.export_member m
                JOIN livewell.export e ON e.id = m.export_id
                WHERE m.batch_id = b.id AND e.state IN ('waiting', 'running')
            )
        RETURNING b.follow
    )
    SELECT jsonb_agg(d.follow) INTO v_follow FROM ended d WHERE d.follow IS NOT NULL;
    IF v_follow IS NOT NULL THEN
        PERFORM livewell.enqueue_jobs(v_follow);
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.end_export_batches IS
    'Marks batches as ended when their last export has, and enqueues their follow-ups.';
REVOKE ALL ON FUNCTION livewell.end_export_batches FROM PUBLIC;
