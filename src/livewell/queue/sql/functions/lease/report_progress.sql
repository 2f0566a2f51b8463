-- Record progress of jobs we hold; what is not ours any more is silently left alone (the finish
-- will say so).
--
-- Called by: worker, at most once a second for all its jobs together.
-- Index:     primary key; no indexed column changes, so the update stays on its page.
CREATE OR REPLACE FUNCTION livewell.report_progress(
    p_worker bigint, p_ids bigint[], p_fences bigint[], p_percents smallint[], p_notes text[]
)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_n integer;
BEGIN
    UPDATE livewell.job j
    SET progress = least(greatest(p.percent, 0), 100), progress_note = left(p.note, 500)
    FROM unnest(p_ids, p_fences, p_percents, p_notes) AS p (id, fence, percent, note)
    WHERE j.id = p.id
        AND j.fence = p.fence
        AND j.worker = p_worker
        AND j.id = ANY (
            ARRAY(
                SELECT l.id FROM livewell.job l
                WHERE l.id = ANY (p_ids)
                ORDER BY l.id FOR UPDATE SKIP LOCKED
            )
        );
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.report_progress IS
    'Writes progress and note of held jobs; answers how many were still held.';
REVOKE ALL ON FUNCTION livewell.report_progress FROM PUBLIC;
