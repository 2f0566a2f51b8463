-- The ledger row as it is after an answer. Pure: nothing is written here.
--
-- Called by: settle_refreshes. What a reason does to the row: refresh_reasons; a reason that is not
--            in it is a failure.
-- p_checked:   when the answer was asked for, on the database's clock. Not when it is stored: an
--              answer that lay around is as old as it is.
-- p_exhausted: the job has no attempts left, so the key is backed off 1 min · 2ⁿ up to 6 h, whoever
--              watches (R9).
-- older:       checked_at does not move, nor does anything that a verdict is made of: an answer
--              from before what is stored confirms nothing (R14, GU5). The key is asked again after
--              as long as it has been stale, from a minute (or its time to live) to 6 h, which
--              doubles each time. What was failing goes on failing.
-- status_version grows with everything a viewer or a waiter wants to know, also that a check
-- brought nothing.
CREATE OR REPLACE FUNCTION livewell.move_ledger(
    p_type livewell.data_type, p_ledger livewell.ledger, p_result jsonb, p_judged text,
    p_exhausted boolean, p_checked timestamptz, p_now timestamptz)
RETURNS livewell.ledger
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    c_backoff_max CONSTANT interval := interval '6 hours';
    v_l         livewell.ledger := p_ledger;
    v_stale     timestamp with time zone;
    v_effect    text := livewell.refresh_reasons() -> p_judged ->> 'ledger';
BEGIN
    IF p_judged IN ('forgotten', 'singly', 'unproven') THEN
        RETURN v_l;
    ELSIF v_effect = 'due' THEN
        v_l.due_at := p_now;
        RETURN v_l;
    END IF;
    v_l.status_version := v_l.status_version + 1;
    v_l.status_at := p_now;

    IF p_judged IN ('stored', 'corrected', 'unchanged', 'missing') THEN
        -- Never back, unless the clock itself went back: then what is stored lies in the future,
        -- and would stand there.
        v_l.checked_at := greatest(
            CASE WHEN p_ledger.checked_at <= p_now THEN p_ledger.checked_at END, p_checked);
        v_l.missing := p_judged = 'missing';
        v_l.failures := 0;
        v_l.failing_since := NULL;
        v_l.retry_at := NULL;
        v_l.reason := NULL;
        v_l.error := NULL;
        v_l.demanded_at := NULL;
        v_l.tries := 0;
        v_l.tried_at := NULL;
        v_l.older_since := NULL;
        v_l.older_source_at := NULL;
        IF p_judged IN ('stored', 'corrected') THEN
            v_l.version := v_l.version + 1;
            v_l.fetched_at := v_l.checked_at;
            v_l.changed_at := p_now;
            v_l.content_hash := decode(p_result ->> 'hash', 'hex');
        END IF;
        IF p_result ->> 'outcome' = 'value' THEN
            v_l.source_at := greatest(
                (p_result ->> 'source_at')::timestamp with time zone,
                CASE WHEN p_type.has_source_time THEN p_ledger.source_at END);
            v_l.event_at := (p_result ->> 'event_at')::timestamp with time zone;
            v_l.etag := left(p_result ->> 'etag', 200);
            v_l.last_modified := left(p_result ->> 'last_modified', 100);
        END IF;
        v_l.due_at := livewell.next_due(p_type, v_l, p_now);
        RETURN v_l;
    END IF;

    v_l.tries := least(v_l.tries + 1, 1000000);
    v_l.tried_at := p_now;
    IF v_effect = 'older' THEN
        v_l.older_since := coalesce(p_ledger.older_since, p_now);
        v_l.older_source_at := (p_result ->> 'source_at')::timestamp with time zone;
        v_stale := livewell.stale_at(p_type, p_ledger);
        v_l.demanded_at := NULL;
        v_l.due_at := livewell.next_due(p_type, v_l, p_now);
        IF v_stale <= p_now AND v_stale > '-infinity' THEN
            v_l.due_at := greatest(
                v_l.due_at,
                p_now
                    + least(
                        c_backoff_max,
                        greatest(least(
                            coalesce(p_ledger.ttl_override, p_type.ttl),
                            interval '1 minute'), p_now - v_stale)));
        END IF;
        RETURN v_l;
    END IF;

    -- A failure: the value stays, and how old it is stays.
    v_l.reason := left(p_judged, 40);
    v_l.error := left(p_result ->> 'error', 300);
    v_l.failing_since := coalesce(p_ledger.failing_since, p_now);
    IF v_effect IN ('parked_key', 'parked_type') THEN
        v_l.failures := least(v_l.failures + 1, 1000);
        v_l.retry_at := p_now + p_type.negative_ttl;
        v_l.demanded_at := NULL;
        v_l.due_at := livewell.next_due(p_type, v_l, p_now);
    ELSIF p_exhausted THEN
        v_l.retry_at := p_now
            + least(c_backoff_max, interval '1 minute' * 2 ^ least(v_l.failures, 10));
        v_l.failures := least(v_l.failures + 1, 1000);
        v_l.demanded_at := NULL;
        v_l.due_at := livewell.next_due(p_type, v_l, p_now);
    END IF;
    RETURN v_l;
END
$$;
COMMENT ON FUNCTION livewell.move_ledger IS
    'The ledger row after an answer: times, version, failures and when it is due again.';
REVOKE ALL ON FUNCTION livewell.move_ledger FROM PUBLIC;
