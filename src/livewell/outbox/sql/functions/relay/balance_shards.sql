-- Take free shards, or give some up, so that every relay of a sink has as many as any other. One
-- that cannot reach the sink leaves them to those that can.
--
-- Called by: renew_relay, exchange_events. The caller has locked the relay's row.
-- A shard is given up only while nothing of it is being delivered by us: then the next relay begins
-- where this one ended, and no event goes twice.
-- Why ORDER BY … SKIP LOCKED: two relays that start at once take different shards.
CREATE OR REPLACE FUNCTION livewell.balance_shards(p_sink smallint, p_relay bigint)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_relays    integer;
    v_away      boolean;
    v_mine      integer;
    v_share     integer;
BEGIN
    SELECT count(*) FILTER (WHERE r.away_since IS NULL),
        coalesce(bool_or(r.away_since IS NOT NULL) FILTER (WHERE r.id = p_relay), false)
    INTO v_relays, v_away
    FROM livewell.relay r WHERE r.sink = p_sink;
    SELECT count(*) INTO v_mine FROM livewell.relay_shard h
    WHERE h.sink = p_sink AND h.relay = p_relay;
    v_share := CASE WHEN v_away AND v_relays > 0 THEN 0 ELSE ceil(64.0 / greatest(v_relays, 1)) END;
    IF v_mine < v_share THEN
        UPDATE livewell.relay_shard h
        SET relay = p_relay
        WHERE h.sink = p_sink
            AND h.shard = ANY (
                ARRAY(
                    SELECT f.shard FROM livewell.relay_shard f
                    WHERE f.sink = p_sink AND f.relay IS NULL
                    ORDER BY f.shard LIMIT v_share - v_mine
                    FOR UPDATE SKIP LOCKED
                )
            );
    ELSIF v_mine > v_share THEN
        UPDATE livewell.relay_shard h
        SET relay = NULL
        WHERE h.sink = p_sink
            AND h.relay = p_relay
            AND h.shard = ANY (
                ARRAY(
                    SELECT f.shard FROM livewell.relay_shard f
                    WHERE f.sink = p_sink
                        AND f.relay = p_relay
                        AND NOT EXISTS (
                            SELECT FROM livewell.event_flight g
                            CROSS JOIN unnest(g.numbers) AS n
                            JOIN livewell.event_delivery d ON d.number = n AND d.sink = p_sink
                            WHERE g.relay = p_relay AND d.shard = f.shard
                        )
                    ORDER BY f.shard DESC LIMIT v_mine - v_share
                    FOR UPDATE
                )
            );
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.balance_shards IS
    'Gives a relay its fair share of the shards of its sink.';
REVOKE ALL ON FUNCTION livewell.balance_shards FROM PUBLIC;
