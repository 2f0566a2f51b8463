-- A page of an act was broken off: by a deadlock, a timeout, the end of a connection. Let the others
-- go first.
--
-- Called by: workers (operations/bulk_acts.py), in a transaction of its own: what broke off the page
--            has rolled back all that the page wrote, its place in the line too.
-- Answer:    postponed | failed (too often in a row: the act has ended) | gone (it had ended) |
--            locked: the page is still under way on the server; say it again later.
-- Index:     bulk_act_pkey.
-- It rests for 1 s, 2 s, 4 s, at most a minute, so twenty times take a quarter of an hour: a disk
-- that is full for some minutes ends nothing.
CREATE OR REPLACE FUNCTION livewell.postpone_bulk_act(p_id bigint, p_error text)
RETURNS text
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    c_tries CONSTANT integer := 20;
    v_act   livewell.bulk_act;
    v_now   timestamptz;
BEGIN
    SELECT * INTO v_act FROM livewell.bulk_act b WHERE b.id = p_id FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN CASE
            WHEN EXISTS (SELECT FROM livewell.bulk_act b WHERE b.id = p_id) THEN 'locked'
            ELSE 'gone' END;
    ELSIF v_act.state <> 'running' THEN
        RETURN 'gone';
    END IF;
    v_now := livewell.now();
    UPDATE livewell.bulk_act b
    SET stepped_at = v_now, broken_off = b.broken_off + 1,
        rest_until = v_now + least(60, power(2, least(b.broken_off, 6))) * interval '1 second',
        error = left(livewell.redact(p_error), 1000)
    WHERE b.id = p_id;
    IF v_act.broken_off + 1 < c_tries THEN
        RETURN 'postponed';
    END IF;
    PERFORM livewell.end_bulk_act(
        p_id, format('%s pages in a row were broken off; the last: %s', c_tries, p_error),
        v_act.asked_by
    );
    RETURN 'failed';
END
$$;
COMMENT ON FUNCTION livewell.postpone_bulk_act IS
    'Puts an act whose page was broken off behind the others; ends it after twenty in a row.';
REVOKE ALL ON FUNCTION livewell.postpone_bulk_act FROM PUBLIC;
