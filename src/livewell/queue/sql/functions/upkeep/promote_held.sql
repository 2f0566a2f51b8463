-- Find held jobs that nothing holds any more: enqueued while the job before them was just ending,
-- or freed by a raised limit.
--
-- Called by: maintain(), every second, by any worker.
-- Index:     job_unique_held_idx, job_group_idx, both walked in pages from where the last look
--            ended.
-- A key that looks free may have been taken by a client who has not committed. Letting go would
-- wait for that client, for as long as it likes, and then fail with everything else that maintain
-- does; so we hardly wait, and leave that one held: it is behind the client's job now, or its turn
-- comes with the next look.
CREATE OR REPLACE FUNCTION livewell.promote_held(p_limit integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
SET enable_sort = off
SET lock_timeout = '10ms'
AS $$
DECLARE
    v_cursor    text[];
    v_queues    text[];
    v_keys      text[];
    v_limits    integer[];
    v_n         integer := 0;
    v_queue     text;
    v_key       text;
    v_taken     integer := 0;           -- keys that somebody has just taken
BEGIN
    -- locked by maintain
    SELECT t.cursor INTO v_cursor FROM livewell.tick t WHERE t.name = 'maintain';
    v_cursor := coalesce(v_cursor, ARRAY['', '', '', '']);

    SELECT array_agg(h.queue), array_agg(h.unique_key) INTO v_queues, v_keys
    FROM (
        SELECT j.queue, j.unique_key FROM livewell.job j
        WHERE j.unique_key IS NOT NULL
            AND j.held_by = 'k'
            AND (j.queue, j.unique_key) > (v_cursor[1], v_cursor[2])
        ORDER BY j.queue, j.unique_key LIMIT p_limit
    ) h;
    IF v_queues IS NULL THEN
        v_cursor[1] := '';
        v_cursor[2] := '';
    ELSE
        v_cursor[1] := v_queues[cardinality(v_queues)];
        v_cursor[2] := v_keys[cardinality(v_keys)];
        <<page>>
        BEGIN
            v_n := livewell.release_held(
                v_queues, v_keys, array_fill(NULL::text, ARRAY[cardinality(v_queues)])
            );
        EXCEPTION WHEN unique_violation OR lock_not_available THEN
            FOR v_i IN 1 .. cardinality(v_queues) LOOP
                <<one>>
                BEGIN
                    v_n := v_n + livewell.release_held(
                        v_queues[v_i:v_i], v_keys[v_i:v_i], ARRAY[NULL::text]
                    );
                EXCEPTION WHEN unique_violation OR lock_not_available THEN
                    v_taken := v_taken + 1;
                END one;
                EXIT WHEN v_taken = 20;     -- at most a fifth of a second
            END LOOP;
        END page;
    END IF;

    -- Groups one by one, by skipping through the index: a group with 200,000 held jobs is one step.
    v_queue := v_cursor[3];
    v_key := v_cursor[4];
    FOR v_step IN 1 .. least(p_limit, 1000) LOOP
        SELECT j.queue, j.group_key INTO v_queue, v_key FROM livewell.job j
        WHERE j.group_key IS NOT NULL AND (j.queue, j.group_key) > (v_queue, v_key)
        ORDER BY j.queue, j.group_key LIMIT 1;
        EXIT WHEN NOT FOUND;
        CONTINUE WHEN NOT EXISTS (
            SELECT FROM livewell.job j
            WHERE j.queue = v_queue AND j.group_key = v_key AND j.state = 'held' AND j.held_by = 'g'
        );
        v_limits := ARRAY(
            SELECT least(q.group_limit, l.per_key) - (
                SELECT count(*)
                FROM (
                    SELECT FROM livewell.job j
                    WHERE j.queue = v_queue
                        AND j.group_key = v_key
                        AND j.state IN ('ready', 'running')
                    LIMIT least(q.group_limit, l.per_key)
                ) a
            )
            FROM livewell.queue q
            LEFT JOIN livewell.limiter l ON l.name = q.limiter
            WHERE q.name = v_queue
        );
        -- No limit any more: a thousand at a time.
        IF coalesce(v_limits[1], 1000) > 0 THEN
            v_n := v_n + livewell.release_held(
                array_fill(v_queue, ARRAY[coalesce(v_limits[1], 1000)]),
                array_fill(NULL::text, ARRAY[coalesce(v_limits[1], 1000)]),
                array_fill(v_key, ARRAY[coalesce(v_limits[1], 1000)])
            );
        END IF;
    END LOOP;
    v_cursor[3] := coalesce(v_queue, '');
    v_cursor[4] := coalesce(v_key, '');
    UPDATE livewell.tick t
    SET cursor = v_cursor
    WHERE t.name = 'maintain' AND t.cursor IS DISTINCT FROM v_cursor;
    RETURN v_n;
END
$$;
COMMENT ON FUNCTION livewell.promote_held IS
    'Makes ready a page of held jobs whose key or group is free; answers how many.';
REVOKE ALL ON FUNCTION livewell.promote_held FROM PUBLIC;
