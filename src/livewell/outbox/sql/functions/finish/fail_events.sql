-- Events that their sink did not take: each blocks its key until its next attempt, and one that has
-- had its last attempt is a dead letter.
--
-- Called by: finish_events.
-- The pause doubles with every attempt from the sink's base up to its cap, give or take a fifth; a
-- time that the sink itself named is kept to, up to an hour.
CREATE OR REPLACE FUNCTION livewell.fail_events(
    p_sink smallint,
    p_flying bigint[],
    p_numbers bigint[],
    p_verdicts text[],
    p_details text[],
    p_again float8[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
    v_dead  bigint[];
BEGIN
    WITH bad AS MATERIALIZED (
        SELECT g.number, g.verdict, nullif(g.detail, '') AS detail, g.again
        FROM unnest(p_numbers, p_verdicts, p_details, p_again) AS g (number, verdict, detail, again)
        JOIN unnest(p_flying) AS f (number) ON f.number = g.number
        WHERE g.verdict <> 'delivered'
    ), failed AS (
        UPDATE livewell.event_delivery d
        SET attempt = d.attempt + 1, aside = true
        FROM bad b
        WHERE d.sink = p_sink AND d.number = b.number
        RETURNING d.number, d.key_hash, d.shard, d.attempt, b.verdict, b.detail, b.again
    ), blocked AS (
        INSERT INTO livewell.event_block AS b (
            sink, key_hash, shard, state, number, since, retry_at, reason
        )
        SELECT DISTINCT ON (f.key_hash)
            p_sink, f.key_hash, f.shard, 'failed'::livewell.block_state, f.number, v_now,
            v_now + interval '1 second' * coalesce(
                CASE WHEN f.again >= 0 THEN least(f.again, 3600) END,   -- least() passes over NULL
                least(
                    s.backoff_cap_seconds,
                    s.backoff_base_seconds * 2 ^ least(f.attempt - 1, 30)
                ) * (0.8 + 0.4 * random())
            ),
            livewell.redact(left(f.detail, 500))
        FROM failed f
        CROSS JOIN livewell.event_sink s
        WHERE s.id = p_sink
        ORDER BY f.key_hash, f.number
        ON CONFLICT (sink, key_hash) DO UPDATE
        SET state = 'failed', number = excluded.number, retry_at = excluded.retry_at,
            reason = excluded.reason
        WHERE b.state <> 'parked'
    )
    SELECT array_agg(f.number) INTO v_dead
    FROM failed f
    CROSS JOIN livewell.event_sink s
    WHERE s.id = p_sink AND (f.verdict = 'refused' OR f.attempt >= s.attempts);
    IF v_dead IS NOT NULL THEN
        PERFORM livewell.bury_events(
            p_sink,
            ARRAY(SELECT n FROM unnest(v_dead) AS n ORDER BY n),
            ARRAY(
                SELECT CASE g.verdict WHEN 'refused' THEN 'refused' ELSE 'attempts' END
                FROM unnest(p_numbers, p_verdicts) AS g (number, verdict)
                WHERE g.number = ANY (v_dead) ORDER BY g.number
            ),
            ARRAY(
                SELECT nullif(g.detail, '') FROM unnest(p_numbers, p_details) AS g (number, detail)
                WHERE g.number = ANY (v_dead) ORDER BY g.number
            )
        );
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.fail_events IS
    'Blocks the keys of events that were not taken; makes dead letters of those at their end.';
REVOKE ALL ON FUNCTION livewell.fail_events FROM PUBLIC;
