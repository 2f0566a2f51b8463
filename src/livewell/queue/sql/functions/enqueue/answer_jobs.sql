-- Say what became of the jobs that enqueue_jobs could not simply insert, and do what their policy
-- says.
--
-- Called by: enqueue_jobs, if insert_jobs collided with anything. Answers as described there.
-- Index:     job_unique_key_idx, the primary keys of history and of the dead letters.
-- New statements, so fresh snapshots: they see the rows that the insert collided with.
CREATE OR REPLACE FUNCTION livewell.answer_jobs(
    p_jobs jsonb, p_inserted bigint[], p_again boolean, p_now timestamptz
)
RETURNS TABLE (asked_id bigint, answer text, job_id bigint)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_policies  pg_catalog.jsonb;
    v_changed   bigint[];
BEGIN
    SELECT jsonb_agg(e) INTO v_policies FROM jsonb_array_elements(p_jobs) AS e
    WHERE e ->> 'policy' <> 'keep'
        AND e ? 'unique_key'
        AND (e ->> 'id')::bigint <> ALL (coalesce(p_inserted, '{}'));
    IF v_policies IS NOT NULL THEN
        RETURN QUERY
        SELECT a.asked_id, a.answer, a.job_id FROM livewell.merge_jobs(v_policies, p_now) AS a;
        v_changed := ARRAY(SELECT (e ->> 'id')::bigint FROM jsonb_array_elements(v_policies) AS e);
    END IF;
    RETURN QUERY
    SELECT g.id,
        CASE
            WHEN own.id IS NOT NULL OR past.id IS NOT NULL THEN 'known'
            WHEN other.id IS NOT NULL THEN 'merged'
            ELSE 'vanished'
        END,
        coalesce(own.id, past.id, other.id, g.id)
    FROM jsonb_to_recordset(p_jobs) AS g (
        id bigint, queue pg_catalog.text, unique_key pg_catalog.text
    )
    -- LATERAL with LIMIT: one index probe per job asked for. As plain joins these read the whole
    -- live table up to some 10,000 rows (jsonb is taken for 100 rows).
    LEFT JOIN LATERAL (SELECT j.id FROM livewell.job j WHERE j.id = g.id LIMIT 1) own ON true
    LEFT JOIN LATERAL (
        SELECT h.id FROM livewell.job_history h
        WHERE p_again AND h.id = g.id
        UNION ALL
        SELECT d.id FROM livewell.dead_job d
        WHERE p_again AND d.id = g.id
        LIMIT 1
    ) past ON true
    LEFT JOIN LATERAL (
        SELECT j.id FROM livewell.job j
        WHERE j.queue = g.queue AND j.unique_key = g.unique_key AND j.held_by IS DISTINCT FROM 'k'
        LIMIT 1
    ) other ON true
    WHERE g.id <> ALL (coalesce(p_inserted, '{}')) AND g.id <> ALL (coalesce(v_changed, '{}'));
END
$$;
COMMENT ON FUNCTION livewell.answer_jobs IS
    'Answers for jobs that were not inserted: merged, held, dropped, known or vanished.';
REVOKE ALL ON FUNCTION livewell.answer_jobs FROM PUBLIC;
