-- The row of claim_limited that is not a job.
--
-- Called by: claim_limited.
CREATE OR REPLACE FUNCTION livewell.limited_answer(
    p_answer text, p_reason text DEFAULT NULL, p_wait_seconds float8 DEFAULT NULL
)
RETURNS livewell.limited_job
LANGUAGE sql
IMMUTABLE
SET search_path = ''
AS $$
    SELECT jsonb_populate_record(
        NULL::livewell.limited_job,
        jsonb_build_object('answer', p_answer, 'reason', p_reason, 'wait_seconds', p_wait_seconds)
    )
$$;
COMMENT ON FUNCTION livewell.limited_answer IS
    'An answer of claim_limited without a job: why, and for how long.';
REVOKE ALL ON FUNCTION livewell.limited_answer FROM PUBLIC;
