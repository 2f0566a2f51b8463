-- Become, or stay, the only one who does this work; or learn who is, and for how long.
--
-- Called by: take_run; schedule/singleton.py, every third of the lease. p_fence: the fence of the
--            term we believe to hold; NULL when we hold none.
-- Answer:    held     ours until now + lease, under this fence
--            other    somebody else's: ask again in wait_seconds
-- A frozen holder cannot renew an old term: once it has run out, or has gone to somebody else, the
-- old fence opens nothing; asking anew gives a new fence.
-- Those who wait only read: the row is locked by its holder and by who finds it expired. Work under
-- the singleton locks the row first (hold_singleton), so a change of hands waits for it.
CREATE OR REPLACE FUNCTION livewell.acquire_singleton(
    p_name text, p_holder text, p_fence bigint, p_lease interval
)
RETURNS TABLE (answer text, fence bigint, holder text, wait_seconds float8)
LANGUAGE plpgsql
SET search_path = ''
AS $$
#variable_conflict use_column
DECLARE
    v_begun timestamptz := livewell.now();      -- for the look without a lock
    v_now   timestamptz;
    v_row   livewell.singleton;
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'singletons are held on the primary only; this server is a replica'
            USING ERRCODE = 'LW001';
    END IF;
    IF pg_catalog.pg_sequence_last_value('livewell.timeline_seq') IS DISTINCT FROM (
        'x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
    )::bit(32)::bigint
    THEN
        PERFORM livewell.raise_fences();       -- a failover
    END IF;
    IF p_lease NOT BETWEEN interval '100 ms' AND interval '1 hour' THEN
        RAISE EXCEPTION 'a lease of %: 100 ms to 1 hour are allowed', p_lease
            USING ERRCODE = 'LW003';
    END IF;
    SELECT * INTO v_row FROM livewell.singleton s WHERE s.name = p_name;
    IF FOUND AND v_row.expires_at > v_begun AND v_row.fence IS DISTINCT FROM p_fence THEN
        RETURN QUERY
        SELECT 'other', NULL::bigint, v_row.holder,
            extract(epoch FROM v_row.expires_at - v_begun)::float8;
        RETURN;
    END IF;
    IF v_row.name IS NULL THEN
        INSERT INTO livewell.singleton (name, fence, holder, acquired_at, renewed_at, expires_at)
        VALUES (p_name, 0, p_holder, '-infinity', '-infinity', '-infinity')
        ON CONFLICT (name) DO NOTHING;
    END IF;
    SELECT * INTO v_row FROM livewell.singleton s WHERE s.name = p_name FOR NO KEY UPDATE;
    v_now := livewell.now();
    IF v_row.expires_at > v_now THEN
        IF v_row.fence IS DISTINCT FROM p_fence THEN
            RETURN QUERY
            SELECT 'other', NULL::bigint, v_row.holder,
                extract(epoch FROM v_row.expires_at - v_now)::float8;
            RETURN;
        END IF;
        UPDATE livewell.singleton s
        SET renewed_at = v_now, expires_at = v_now + p_lease
        WHERE s.name = p_name;
        RETURN QUERY SELECT 'held', v_row.fence, v_row.holder, NULL::float8;
        RETURN;
    END IF;
    -- After a failover above all terms of before, whatever of them this server knows.
    v_row.fence := greatest(
        v_row.fence + 1, pg_catalog.pg_sequence_last_value('livewell.failover_seq') * 4294967296
    );
    UPDATE livewell.singleton s
    SET fence = v_row.fence, holder = p_holder, acquired_at = v_now, renewed_at = v_now,
        expires_at = v_now + p_lease
    WHERE s.name = p_name;
    RETURN QUERY SELECT 'held', v_row.fence, p_holder, NULL::float8;
END
$$;
COMMENT ON FUNCTION livewell.acquire_singleton IS
    'Acquires or renews a singleton, or says who holds it and for how long.';
REVOKE ALL ON FUNCTION livewell.acquire_singleton FROM PUBLIC;
