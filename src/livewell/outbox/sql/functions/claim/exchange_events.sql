-- Finish a batch and claim the next: what a relay does all day, in one call.
--
-- Called by: Relay, after every batch and when it is woken.
-- p_numbers, p_verdicts, p_details, p_again: what became of events in flight: delivered, refused,
--            failed or unknown; why; and when to try again, if the sink said so.
-- p_sending: what is still on its way and goes on; later events of its keys wait for it.
-- What was in flight and is in none of the two goes back, and nobody is to blame.
-- p_limit:   how many to claim; 0: none.
-- Answer:    a row `finished`, with how many of p_numbers were ours in number; then the new batch.
--            No row at all: the relay was buried, and nothing was written.
-- Sent again after a lost answer it does no harm: what is not in flight any more is left alone.
-- Why the lease is locked first, in its own statement: burying waits for it, so a batch is either
-- finished by its relay or lost, never both.
-- Two statements inside, finish then claim: in one, the keys that the finish frees would be
-- invisible to the claim.
CREATE OR REPLACE FUNCTION livewell.exchange_events(
    p_relay bigint,
    p_numbers bigint[],
    p_verdicts text[],
    p_details text[],
    p_again float8[],
    p_sending bigint[],
    p_limit integer
)
RETURNS SETOF livewell.relayed_event
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_relay livewell.relay;
    v_news  livewell.relayed_event;
BEGIN
    SELECT r.* INTO v_relay FROM livewell.relay r WHERE r.id = p_relay FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    v_news.answer := 'finished';
    v_news.number := livewell.finish_events(
        v_relay.sink, p_relay, p_numbers, p_verdicts, p_details, p_again, p_sending
    );
    RETURN NEXT v_news;
    -- Here, where least is in flight: under load no shard would ever be idle at a heartbeat.
    PERFORM livewell.balance_shards(v_relay.sink, p_relay);
    IF p_limit > 0 THEN
        RETURN QUERY SELECT * FROM livewell.claim_events(v_relay, p_limit, NULL);
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.exchange_events IS
    'Finishes what a relay delivered and claims its next batch.';
REVOKE ALL ON FUNCTION livewell.exchange_events FROM PUBLIC;
