-- The sample of jobs by queue and state, at most ten seconds old; taken anew if it is this caller's
-- turn.
--
-- Called by: state_queue, find_queues. See find_sample for whose turn it is.
CREATE OR REPLACE FUNCTION livewell.read_queue_sample(
    p_now timestamptz, OUT at timestamptz, OUT value jsonb
)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_sample    record;
BEGIN
    SELECT * INTO v_sample FROM livewell.find_sample('queue', p_now);
    IF v_sample.wanted THEN
        v_sample.value := livewell.sample_queue();
        v_sample.at := p_now;
        PERFORM livewell.keep_sample('queue', p_now, v_sample.value);
    END IF;
    at := v_sample.at;
    value := v_sample.value;
END
$$;
COMMENT ON FUNCTION livewell.read_queue_sample IS
    'Jobs by queue and state and dead letters by reason, as last sampled.';
REVOKE ALL ON FUNCTION livewell.read_queue_sample FROM PUBLIC;
