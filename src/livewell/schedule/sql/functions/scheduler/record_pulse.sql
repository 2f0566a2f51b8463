-- A loop says that it still turns.
--
-- Called by: tick_schedules() for the scheduler itself, and loops such as the due check, every few
--            seconds. p_turns, p_done: since it last said so.
CREATE OR REPLACE FUNCTION livewell.record_pulse(
    p_name text, p_holder text, p_every interval, p_turns bigint, p_done bigint
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now timestamptz := livewell.now();
BEGIN
    INSERT INTO livewell.pulse AS p (name, holder, every, turns, done, first_at, last_at)
    VALUES (p_name, p_holder, p_every, p_turns, p_done, v_now, v_now)
    ON CONFLICT (name)
    DO UPDATE SET holder = excluded.holder, every = excluded.every,
        turns = p.turns + excluded.turns, done = p.done + excluded.done, last_at = excluded.last_at;
END
$$;
COMMENT ON FUNCTION livewell.record_pulse IS
    'Adds to the one row of a loop: turns, what came of them, and the time.';
REVOKE ALL ON FUNCTION livewell.record_pulse FROM PUBLIC;
