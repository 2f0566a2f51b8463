-- Write a batch and its members; its follow-up gets an id, so that it can be enqueued once only.
--
-- Called by: request_exports, which holds the user's lock.
-- A batch that only repeats exports which have ended is over at once: end_export_batches looks.
CREATE OR REPLACE FUNCTION livewell.insert_export_batch(
    p_user text, p_batch uuid, p_found jsonb, p_follow jsonb, p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_follow_id bigint;
BEGIN
    IF p_follow IS NOT NULL THEN
        SELECT f INTO v_follow_id FROM livewell.reserve_job_ids(1) AS f;
    END IF;
    INSERT INTO livewell.export_batch (id, user_id, created_at, follow)
    VALUES (p_batch, p_user, p_now, p_follow || jsonb_build_object('id', v_follow_id))
    ON CONFLICT (id) DO NOTHING;
    IF NOT FOUND THEN
        RETURN;     -- the same call again
    END IF;
    INSERT INTO livewell.export_member (batch_id, export_id, place, user_id)
    SELECT p_batch, m.export, m.place, p_user
    FROM jsonb_to_recordset(p_found) AS m (place integer, export pg_catalog.uuid)
    ORDER BY m.place
    ON CONFLICT (batch_id, export_id) DO NOTHING;
    PERFORM livewell.end_export_batches(ARRAY[p_batch], p_now);
END
$$;
COMMENT ON FUNCTION livewell.insert_export_batch IS 'Writes a batch of exports and which exports it has.';
REVOKE ALL ON FUNCTION livewell.insert_export_batch FROM PUBLIC;
