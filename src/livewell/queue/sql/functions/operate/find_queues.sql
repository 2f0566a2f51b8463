-- Queues whose names begin so, in the form of the system state: for those beyond its first 1,000.
--
-- Called by: the dashboard's look-up of a queue. At most p_limit, and 100.
-- Index:     queue_pkey. A name has only a-z 0-9 _ . -, and ~ is behind all of them.
CREATE OR REPLACE FUNCTION livewell.find_queues(p_prefix text, p_limit integer)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_sample    record;
BEGIN
    SELECT * INTO v_sample FROM livewell.read_queue_sample(v_now);
    RETURN livewell.describe_queues(
        ARRAY(
            SELECT q.name FROM livewell.queue q
            WHERE q.name >= p_prefix AND q.name < p_prefix || '~'
            ORDER BY q.name LIMIT least(greatest(p_limit, 1), 100)
        ),
        v_sample.value, livewell.count_running(), v_now
    );
END
$$;
COMMENT ON FUNCTION livewell.find_queues IS
    'Queues by the beginning of their names, as the system state has them.';
REVOKE ALL ON FUNCTION livewell.find_queues FROM PUBLIC;
