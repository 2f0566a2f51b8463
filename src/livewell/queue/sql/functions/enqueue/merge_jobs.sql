-- Jobs whose key a live job has: raise or replace that one while it waits, or hold the new one
-- behind it.
--
-- Called by: answer_jobs, for policies other than keep, after the insert met the key; the same
--            elements, and the same answers.
-- Index:     job_unique_key_idx, job_unique_held_idx.
-- In key order, as in insert_jobs (given_jobs).
-- Only waiting rows are changed, and only those that nobody has locked; a running row belongs to
-- its owner.
-- The held row is inserted without waiting for the current one: if that ends at this moment,
-- promote_held finds the held one.
CREATE OR REPLACE FUNCTION livewell.merge_jobs(p_jobs jsonb, p_now timestamptz)
RETURNS TABLE (asked_id bigint, answer text, job_id bigint)
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_g         record;
    v_current   bigint;
    v_state     livewell.job_state;
    v_held      bigint;
BEGIN
    FOR v_g IN SELECT * FROM livewell.given_jobs(p_jobs, p_now) LOOP
        asked_id := v_g.id;
        -- This very id, accepted before?
        IF EXISTS (SELECT FROM livewell.job j WHERE j.id = v_g.id)
            OR EXISTS (SELECT FROM livewell.job_history h WHERE h.id = v_g.id)
            OR EXISTS (SELECT FROM livewell.dead_job d WHERE d.id = v_g.id)
        THEN
            answer := 'known';
            job_id := v_g.id;
            RETURN NEXT;
            CONTINUE;
        END IF;
        SELECT j.id, j.state INTO v_current, v_state FROM livewell.job j
        WHERE j.queue = v_g.queue
            AND j.unique_key = v_g.unique_key
            AND j.held_by IS DISTINCT FROM 'k';
        IF NOT FOUND THEN
            answer := 'vanished';
            job_id := v_g.id;
            RETURN NEXT;
            CONTINUE;
        END IF;
        answer := 'merged';
        job_id := v_current;
        IF v_g.policy = 'raise' THEN
            UPDATE livewell.job j
            SET lane = least(j.lane, v_g.lane), rank = least(j.rank, v_g.rank),
                priority = greatest(j.priority, v_g.priority)
            WHERE j.id = (
                SELECT w.id FROM livewell.job w
                WHERE w.id = v_current AND w.state <> 'running'
                FOR UPDATE SKIP LOCKED
            )
                AND (j.lane > v_g.lane OR j.rank > v_g.rank);
            RETURN NEXT;
            CONTINUE;
        END IF;
        IF v_g.policy = 'replace' AND v_state <> 'running' THEN
            UPDATE livewell.job j
            SET payload = v_g.payload, lane = least(j.lane, v_g.lane),
                rank = least(j.rank, v_g.rank)
            WHERE j.id = (
                SELECT w.id FROM livewell.job w
                WHERE w.id = v_current AND w.state <> 'running'
                FOR UPDATE SKIP LOCKED
            );
            IF FOUND THEN
                RETURN NEXT;
                CONTINUE;
            END IF;
        END IF;
        -- It runs, or is being claimed or ended right now: behind it.
        INSERT INTO livewell.job (
            id, rank, run_at, created_at, state, held_by, max_attempts, priority, lane, queue, kind,
            unique_key, group_key, call_key, batch_id, units, payload, trace
        )
        VALUES (
            v_g.id, v_g.rank, v_g.due_at, p_now, 'held', 'k', v_g.max_attempts, v_g.priority,
            v_g.lane, v_g.queue, v_g.kind, v_g.unique_key, v_g.group_key, v_g.call_key,
            v_g.batch_id, v_g.units, v_g.payload, v_g.trace
        )
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            answer := 'held';
            job_id := v_g.id;
            RETURN NEXT;
            CONTINUE;
        END IF;
        SELECT j.id INTO v_held FROM livewell.job j
        WHERE j.queue = v_g.queue AND j.unique_key = v_g.unique_key AND j.held_by = 'k';
        IF FOUND AND v_g.policy = 'replace' THEN
            UPDATE livewell.job j
            SET payload = v_g.payload, lane = least(j.lane, v_g.lane),
                rank = least(j.rank, v_g.rank)
            WHERE j.id = (
                SELECT w.id FROM livewell.job w
                WHERE w.id = v_held AND w.held_by = 'k'
                FOR UPDATE SKIP LOCKED
            );
            answer := 'held';
        ELSE
            answer := 'dropped';
        END IF;
        job_id := v_held;
        IF NOT FOUND OR v_held IS NULL THEN
            answer := 'vanished';       -- it was let go of at this very moment: ask once more
            job_id := v_g.id;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;
COMMENT ON FUNCTION livewell.merge_jobs IS
    'Applies the unique-key policies raise, replace and again to jobs whose key is taken.';
REVOKE ALL ON FUNCTION livewell.merge_jobs FROM PUBLIC;
