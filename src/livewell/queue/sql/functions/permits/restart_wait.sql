-- For how long at most a limiter grants nothing because the server has just been started: until
-- every worker of its queues that may be alive has renewed since, one lease at most. NULL: no wait.
--
-- Called by: limiter_room, before every grant.
-- Why: a worker that met a wall while the database was away could not say so. It reports what it
--      knows before it renews, so once all have renewed, all is known. Without it 101 calls were
--      made in a silence of 30 s.
-- A worker whose row is left over from before may be alive: an outage can be longer than a lease.
-- After one lease it had its time. With no such row (a fresh start, workers that stopped in order)
-- nobody waits.
-- No lease is longer than an hour, so the table of workers is read only in the first hour of a
-- server. A clock that is behind the server's start (virtual time) never waits.
CREATE OR REPLACE FUNCTION livewell.restart_wait(p_limiter text, p_now timestamptz)
RETURNS float8
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_started pg_catalog.timestamptz := livewell.server_started();
BEGIN
    IF p_now < v_started OR p_now >= v_started + interval '1 hour' THEN
        RETURN NULL;
    END IF;
    RETURN (
        SELECT extract(epoch FROM max(v_started + w.lease) - p_now) FROM livewell.worker w
        WHERE w.renewed_at < v_started
            AND v_started + w.lease > p_now
            AND EXISTS (
                SELECT FROM livewell.queue q
                WHERE q.limiter = p_limiter AND livewell.works_queue(w.queues, q.name)
            )
    );
END
$$;
COMMENT ON FUNCTION livewell.restart_wait IS
    'Seconds for which a limiter waits at most for its workers to report after a restart of the '
    'server; NULL if it does not.';
REVOKE ALL ON FUNCTION livewell.restart_wait FROM PUBLIC;
