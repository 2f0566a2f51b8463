-- All ids that can match a filter, if an index names them and they are few; NULL otherwise.
--
-- Called by: find_jobs. p_few: how many are few.
-- Index:     job_unique_key_idx and job_unique_held_idx, also without a queue while there are at
--            most 1,000 queues; job_batch_idx, dead_job_batch_idx; job_group_idx with a queue;
--            job_worker_idx, job_delayed_idx, job_ready_idx, job_suspect_idx by state.
-- The first that fits is used: a key has two jobs at most, a batch and a group mostly few.
CREATE OR REPLACE FUNCTION livewell.narrow_jobs(p_filter jsonb, p_few integer)
RETURNS bigint[]
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET enable_seqscan = off
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    v_queue     text := p_filter ->> 'queue';
    v_state     text := p_filter ->> 'state';
    v_key       text := p_filter ->> 'key';
    v_group     text := p_filter ->> 'group';
    v_batch     bigint := (p_filter ->> 'batch')::bigint;
    v_queues    text[];
    v_ids       bigint[];
BEGIN
    IF v_state IN ('succeeded', 'cancelled') THEN
        RETURN NULL;
    ELSIF v_state = 'failed' THEN
        IF v_batch IS NULL THEN
            RETURN NULL;
        END IF;
        v_ids := ARRAY(
            SELECT d.id FROM livewell.dead_job d WHERE d.batch_id = v_batch LIMIT p_few + 1
        );
        RETURN CASE WHEN cardinality(v_ids) <= p_few THEN v_ids END;
    END IF;

    IF v_key IS NOT NULL THEN
        v_queues := ARRAY(
            SELECT q.name FROM livewell.queue q
            WHERE v_queue IS NULL OR q.name = v_queue
            ORDER BY q.name LIMIT 1001
        );
        IF cardinality(v_queues) <= 1000 THEN
            RETURN ARRAY(
                SELECT k.id
                FROM unnest(v_queues) AS g (name)
                CROSS JOIN LATERAL (
                    SELECT j.id FROM livewell.job j
                    WHERE j.queue = g.name
                        AND j.unique_key = v_key
                        AND j.held_by IS DISTINCT FROM 'k'
                    UNION ALL
                    SELECT j.id FROM livewell.job j
                    WHERE j.queue = g.name AND j.unique_key = v_key AND j.held_by = 'k'
                ) k
            );
        END IF;
    END IF;
    IF v_batch IS NOT NULL THEN
        v_ids := ARRAY(SELECT j.id FROM livewell.job j WHERE j.batch_id = v_batch LIMIT p_few + 1);
    ELSIF v_group IS NOT NULL AND v_queue IS NOT NULL THEN
        v_ids := ARRAY(
            SELECT j.id FROM livewell.job j
            WHERE j.queue = v_queue AND j.group_key = v_group
            LIMIT p_few + 1
        );
    ELSIF v_state = 'running' THEN
        v_ids := ARRAY(
            SELECT j.id FROM livewell.job j
            WHERE j.state = 'running' AND j.worker > 0
            LIMIT p_few + 1
        );
    ELSIF v_state = 'delayed' THEN
        v_ids := ARRAY(
            SELECT j.id FROM livewell.job j
            WHERE j.state = 'delayed' AND j.run_at > '-infinity'
            LIMIT p_few + 1
        );
    ELSIF v_state = 'ready' THEN
        v_ids := ARRAY(
            SELECT r.id
            FROM (
                SELECT j.id FROM livewell.job j
                WHERE j.state = 'ready' AND j.lost = 0 AND (v_queue IS NULL OR j.queue = v_queue)
                UNION ALL
                SELECT j.id FROM livewell.job j
                WHERE j.state = 'ready' AND j.lost > 0 AND (v_queue IS NULL OR j.queue = v_queue)
            ) r
            LIMIT p_few + 1
        );
    END IF;
    RETURN CASE WHEN cardinality(v_ids) <= p_few THEN v_ids END;
END
$$;
COMMENT ON FUNCTION livewell.narrow_jobs IS
    'All ids that can match a filter of jobs, where an index gives them and they are few.';
REVOKE ALL ON FUNCTION livewell.narrow_jobs FROM PUBLIC;
