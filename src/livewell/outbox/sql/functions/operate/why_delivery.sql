-- What is known of one event at one sink, in words, with the next step.
--
-- Called by: why_event.
-- The order of the cases is the answer: what stands in the way first is said, and nothing behind it.
CREATE OR REPLACE FUNCTION livewell.why_delivery(
    p_id text, p_topic text, p_sink text, p_state text, p_at timestamptz, p_relay text,
    p_attempt smallint, p_attempts smallint, p_behind text, p_block_state text,
    p_retry_at timestamptz, p_reason text, p_detail text, p_outside boolean,
    p_paused_at timestamptz, p_relays bigint, p_away text, p_owner bigint, p_routed boolean
)
RETURNS TABLE (code text, words text, next text)
LANGUAGE sql
IMMUTABLE
SET search_path = ''
SET timezone = 'UTC'
AS $$
    SELECT c.code, c.words, c.next
    FROM (VALUES
        (p_state = 'not routed' AND NOT p_routed, 'not_routed',
            format('Sink %s does not take topic %s.', p_sink, p_topic),
            'Nothing to do, or declare the sink with a pattern that fits the topic.'),
        (p_state = 'not routed', 'not_recorded',
            format('No delivery to sink %s is recorded: the sink did not take topic %s yet when the '
                'event was emitted, or the record is older than it is kept.', p_sink, p_topic),
            format('Send it once more: livewell outbox replay begin %s --topic %s --from … --to …',
                p_sink, p_topic)),
        (p_state = 'delivered', 'delivered',
            format('Sink %s took it at %s.', p_sink, date_trunc('second', p_at)), 'Nothing to do.'),
        (p_state = 'dead', 'dead',
            format('It is a dead letter of sink %s since %s (%s): %s', p_sink,
                date_trunc('second', p_at), p_reason, coalesce(p_detail, 'no detail')),
            format('Mend the cause, then: livewell outbox dead redrive %s --sink %s', p_id, p_sink)),
        (p_state = 'in flight', 'in_flight',
            format('%s is delivering it to sink %s since %s.', coalesce(p_relay, 'A relay'), p_sink,
                date_trunc('second', p_at)),
            'Wait for the answer of the sink, until its deadline.'),
        (p_paused_at IS NOT NULL, 'paused',
            format('Sink %s is paused since %s.', p_sink, date_trunc('second', p_paused_at)),
            format('Let it go on: livewell outbox resume %s', p_sink)),
        (p_block_state = 'parked', 'parked',
            format('It is parked behind event %s, a dead letter of sink %s: %s', p_behind, p_sink,
                coalesce(p_detail, 'no detail')),
            format('Redrive or discard that one: livewell outbox dead redrive %s --sink %s', p_behind,
                p_sink)),
        (p_relays = 0 AND p_outside, 'nobody_claims',
            format('Nobody outside claims the events of sink %s.', p_sink),
            format('Start the program that calls outbox_claim for sink %s.', p_sink)),
        (p_relays = 0, 'no_relay',
            format('No relay of sink %s is alive.', p_sink),
            'Start one: livewell outbox relay APP, or livewell worker APP; APP declares the sink.'),
        (p_away IS NOT NULL, 'away',
            format('Sink %s is away: %s', p_sink, p_away),
            'Mend the receiver or its address; the relays try again by themselves.'),
        (p_state = 'blocked', 'failed',
            format('Attempt %s of %s failed: %s. The next is at %s.', p_attempt, p_attempts,
                coalesce(p_detail, 'no detail'), date_trunc('second', p_retry_at)),
            'Wait, or mend the cause at the receiver.'),
        (p_state = 'set aside' AND p_behind IS NOT NULL, 'behind',
            format('It waits behind event %s of its key, which is %s.', p_behind, p_block_state),
            format('See what holds that one: livewell outbox why %s --sink %s', p_behind, p_sink)),
        (p_state = 'set aside', 'draining', 'Its key goes now, in order.', 'Wait a moment.'),
        (p_owner IS NULL AND NOT p_outside, 'free_shard',
            format('Its shard of sink %s has no relay right now.', p_sink),
            'Wait for the next heartbeat of a relay.'),
        (true, 'waiting', format('It waits for its turn at sink %s.', p_sink),
            format('Wait; see how long a turn takes: livewell outbox sinks show %s', p_sink))
    ) AS c (holds, code, words, next)
    WHERE c.holds LIMIT 1
$$;
COMMENT ON FUNCTION livewell.why_delivery IS
    'What stands in the way of one event at one sink, in words.';
REVOKE ALL ON FUNCTION livewell.why_delivery FROM PUBLIC;
