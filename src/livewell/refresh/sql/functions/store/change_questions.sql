-- Jobs that go back are asked another way next time, and a type that the plan does not include is
-- parked.
--
-- Called by: store_refreshes, if not every result was good. Arrays in one order; p_ends as for
-- finish_jobs. Index: job_pkey, data_type_pkey.
-- The planner settings of store_refreshes hold here too.
-- What failed, or was refused together with others, is asked alone: the next failure is its own
-- (R14).
-- unproven:  on a connection of its own. forgotten: without the condition, for all of it.
CREATE OR REPLACE FUNCTION livewell.change_questions(
    p_ids bigint[], p_types text[], p_judged text[], p_errors text[], p_ends jsonb)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    UPDATE livewell.job j SET call_key = j.unique_key
    WHERE j.id = ANY (
        ARRAY(SELECT (e ->> 'id')::bigint FROM jsonb_array_elements(p_ends) AS e
              WHERE e ->> 'outcome' = 'retry')
        || ARRAY(SELECT u.id FROM unnest(p_ids, p_judged) AS u (id, judged)
                 WHERE u.judged = 'singly'))
      AND j.call_key <> j.unique_key;
    IF p_judged && '{unproven,forgotten}' THEN
        UPDATE livewell.job j
        SET payload = CASE u.judged WHEN 'unproven' THEN j.payload || '{"fresh": true}'
                                    ELSE j.payload - '{etag,last_modified,hash,since}'::text[] END
        FROM unnest(p_ids, p_judged) AS u (id, judged)
        WHERE j.id = u.id AND u.judged IN ('unproven', 'forgotten');
    END IF;
    UPDATE livewell.data_type d
    SET parked_reason = left(u.judged || ': ' || coalesce(u.error, ''), 300)
    FROM (
        SELECT DISTINCT ON (u.name) u.name, u.judged, u.error
        FROM unnest(p_types, p_judged, p_errors) AS u (name, judged, error)
        WHERE livewell.refresh_reasons() -> u.judged ->> 'ledger' = 'parked_type'
        ORDER BY u.name) u
    WHERE d.name = u.name AND d.parked_reason IS NULL;
END
$$;
COMMENT ON FUNCTION livewell.change_questions IS
    'Changes how jobs that go back are asked, and parks types that the plan does not include.';
REVOKE ALL ON FUNCTION livewell.change_questions FROM PUBLIC;
