-- Mark an event as seen by a consumer, in the transaction in which it is handled: true if it is the
-- first time, false for a duplicate.
--
-- Called by: Inbox (app.inbox), and by consumers in any language:
--            BEGIN; SELECT livewell.see_event('billing', 'd41d8cd9-42'); …; COMMIT.
-- Index:     inbox_pkey of each day.
-- Why the lock: a day is part of the key, as partitions demand, so two copies that arrive on both
-- sides of midnight are two keys. Whoever comes second waits for the end of the first, then looks.
-- Why not under REPEATABLE READ: there the look would see the time before the wait. SERIALIZABLE
-- ends one of the two by itself.
CREATE OR REPLACE FUNCTION livewell.see_event(p_consumer text, p_event_id text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now   timestamptz;
BEGIN
    IF coalesce(octet_length(p_consumer), 0) NOT BETWEEN 1 AND 200
        OR coalesce(octet_length(p_event_id), 0) NOT BETWEEN 1 AND 512
    THEN
        RAISE EXCEPTION 'inbox: the consumer has % bytes (1 to 200 are allowed), the event''s id % '
            '(1 to 512)', coalesce(octet_length(p_consumer), 0), coalesce(octet_length(p_event_id), 0)
            USING ERRCODE = 'LW003';
    END IF;
    IF current_setting('transaction_isolation') = 'repeatable read' THEN
        RAISE EXCEPTION 'inbox: under REPEATABLE READ a duplicate could be missed; use READ '
            'COMMITTED (the default) or SERIALIZABLE for this transaction'
            USING ERRCODE = 'LW003';
    END IF;
    PERFORM pg_catalog.pg_advisory_xact_lock(
        hashtextextended(p_consumer || E'\x1f' || p_event_id, 7091318)
    );
    PERFORM FROM livewell.inbox i WHERE i.event_id = p_event_id AND i.consumer = p_consumer;
    IF FOUND THEN
        RETURN false;
    END IF;
    v_now := livewell.now();
    INSERT INTO livewell.inbox (received_at, consumer, event_id)
    VALUES (v_now, p_consumer, p_event_id);
    RETURN true;
END
$$;
COMMENT ON FUNCTION livewell.see_event IS
    'Marks an event as seen by a consumer; answers whether it is the first time.';
REVOKE ALL ON FUNCTION livewell.see_event FROM PUBLIC;
