-- Open a batch. Its id and that of its follow-up come from reserve_job_ids, so a repeated call is
-- the same batch.
--
-- Called by: clients, in the caller's transaction or not.
CREATE OR REPLACE FUNCTION livewell.create_batch(
    p_id bigint,
    p_follow_id bigint DEFAULT NULL,
    p_follow_when text DEFAULT NULL,
    p_follow jsonb DEFAULT NULL
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    IF p_follow IS NOT NULL
        AND NOT EXISTS (SELECT FROM livewell.queue q WHERE q.name = p_follow ->> 'queue')
    THEN
        RAISE EXCEPTION 'queue "%" is not declared', coalesce(p_follow ->> 'queue', '(none)')
            USING ERRCODE = 'LW002';
    END IF;
    INSERT INTO livewell.batch (id, created_at, follow_id, follow_when, follow)
    VALUES (p_id, v_now, p_follow_id, p_follow_when, p_follow)
    ON CONFLICT DO NOTHING;
END
$$;
COMMENT ON FUNCTION livewell.create_batch IS
    'Opens a batch, with the follow-up job to enqueue when all its jobs have ended.';
REVOKE ALL ON FUNCTION livewell.create_batch FROM PUBLIC;
