-- Add what a relay did lately to the counts of its sink, by the minute.
--
-- Called by: Relay, every few seconds; bury_relays, with lost_lease. p_milliseconds: at the sink,
--            in all.
CREATE OR REPLACE FUNCTION livewell.add_event_stats(
    p_sink text, p_outcomes text[], p_n bigint[], p_milliseconds bigint[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz := livewell.now();
BEGIN
    INSERT INTO livewell.event_stat AS t (sink, minute, outcome, n, milliseconds)
    SELECT s.id, date_trunc('minute', v_now), g.outcome, g.n, g.milliseconds
    FROM unnest(p_outcomes, p_n, p_milliseconds) AS g (outcome, n, milliseconds)
    JOIN livewell.event_sink s ON s.name = p_sink
    ORDER BY g.outcome
    ON CONFLICT (sink, minute, outcome) DO UPDATE
    SET n = t.n + excluded.n, milliseconds = t.milliseconds + excluded.milliseconds;
END
$$;
COMMENT ON FUNCTION livewell.add_event_stats IS 'Adds to the counts of a sink, by the minute.';
REVOKE ALL ON FUNCTION livewell.add_event_stats FROM PUBLIC;
