-- Every queue, 1,000 at most by name, in the form of the system state.
--
-- Called by: state_queue, with its planner settings. p_sample: as sample_queue answers; p_running:
--            as count_running answers.
-- Index:     queue_pkey, and those of describe_queues.
CREATE OR REPLACE FUNCTION livewell.list_queue_states(
    p_sample jsonb, p_running jsonb, p_now timestamptz
)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
BEGIN
    RETURN livewell.describe_queues(
        ARRAY(SELECT q.name FROM livewell.queue q ORDER BY q.name LIMIT 1000),
        p_sample, p_running, p_now
    );
END
$$;
COMMENT ON FUNCTION livewell.list_queue_states IS
    'The queues of the system state, as a JSON array.';
REVOKE ALL ON FUNCTION livewell.list_queue_states FROM PUBLIC;
