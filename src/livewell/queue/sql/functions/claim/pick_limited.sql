-- Third step of claim_limited: which jobs go, and which of them share a call.
--
-- Called by: claim_limited, under the locks of lock_limited.
-- Index:     see limited_candidates, read_candidates and group_has_room.
-- p_kinds, p_batches: how many jobs of a kind one call may carry; kinds that are not named carry
-- one.
-- Where nothing can share a call, no more jobs are looked at than may be called; once a call is
-- going that others might join, a second look goes deeper (5,000 jobs looked at for each claim of
-- 50 calls took 29 ms instead of 4).
-- Why the loop is one piece: whether a job goes depends on all that were taken before it, and a
-- function for each job would be called a thousand times in a claim.
-- The planner settings are those of claim_limited.
CREATE OR REPLACE FUNCTION livewell.pick_limited(
    p_queue livewell.queue,
    p_limiter livewell.limiter,
    p_room livewell.limited_room,
    p_now timestamptz,
    p_empty boolean,
    p_kinds text[],
    p_batches integer[]
)
RETURNS livewell.limited_pick
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_rooms     integer[] := ARRAY[p_room.calls, least(p_room.calls, p_room.background_calls)];
    v_units     bigint[] := ARRAY[p_room.units, p_room.background_units];
    v_reason    text := p_room.reason;
    v_wait      float8 := p_room.wait_seconds;
    v_per_key   integer := least(p_queue.group_limit, p_limiter.per_key);
    v_batch_max integer := greatest(1, (SELECT max(b) FROM unnest(p_batches) AS b));
    v_seen      bigint[];
    v_taken     bigint[] := '{}';
    v_calls     bigint[] := '{}';       -- for each its call's first job, as a place in v_taken
    v_reserve   bigint[] := '{}';       -- for each what it is expected to use
    v_keys      text[] := '{}';         -- calls that others may join, by kind and key
    v_first     integer[] := '{}';      -- and of each its first job, and how many it carries
    v_load      integer[] := '{}';
    v_j         record;
    v_unit      bigint;                 -- what this job is expected to use
    v_place     integer;
    v_shared    boolean;                -- it fits into a call that is already going
    v_open      boolean := false;       -- a call is going that others may join
    v_asked     integer;                -- how many jobs were to be looked at
    v_used      integer := 0;           -- calls so far
    v_full      bigint[];
BEGIN
    -- Whoever beyond their group's limit we meet on the way becomes held, and is not met again; so
    -- a few rounds find what may run.
    FOR v_round IN 1 .. 5 LOOP
        v_full := '{}';
        v_asked := least(
            (v_rooms[1] - v_used) * (CASE WHEN v_open THEN v_batch_max ELSE 1 END) + 50, 5000
        );
        v_seen := livewell.limited_candidates(
            p_queue.name, p_empty AND v_round = 1 AND cardinality(v_taken) = 0, v_asked, v_taken,
            CASE WHEN p_room.probe THEN p_limiter.name END,
            coalesce(p_room.failing_until <= p_now, true)
        );
        EXIT WHEN cardinality(v_seen) = 0;
        FOR v_j IN
            SELECT *
            FROM livewell.read_candidates(
                v_seen, p_kinds, p_batches, p_room.estimates, p_limiter.estimate_units
            )
        LOOP
            EXIT WHEN v_used >= v_rooms[1] AND NOT v_open OR cardinality(v_taken) >= p_room.jobs;
            IF v_per_key IS NOT NULL
                AND v_j.group_key IS NOT NULL
                AND NOT livewell.group_has_room(
                    p_queue.name, p_queue.group_limit, p_room.running, p_limiter.per_key,
                    v_j.group_key, v_taken
                )
            THEN
                v_full := v_full || v_j.id;
                CONTINUE;
            END IF;
            -- Does it fit into a call that is already going?
            v_place := CASE WHEN v_j.batch > 1 THEN array_position(v_keys, v_j.call_name) END;
            v_shared := v_place IS NOT NULL AND v_load[v_place] < v_j.batch;
            v_unit := CASE
                WHEN p_limiter.budget_unit = 'calls' THEN (NOT v_shared)::integer
                ELSE v_j.units END;
            IF v_unit > v_units[v_j.lane + 1] THEN
                v_reason := 'budget';
                CONTINUE;
            END IF;
            IF v_shared THEN
                v_load[v_place] := v_load[v_place] + 1;
                v_taken := v_taken || v_j.id;
                v_calls := v_calls || v_first[v_place]::bigint;
            ELSE
                CONTINUE WHEN v_used >= v_rooms[v_j.lane + 1];
                v_used := v_used + 1;
                v_taken := v_taken || v_j.id;
                v_calls := v_calls || cardinality(v_taken)::bigint;
                IF v_j.joinable THEN
                    v_open := true;
                    IF v_place IS NULL THEN
                        v_keys := v_keys || v_j.call_name;
                        v_place := cardinality(v_keys);
                    END IF;
                    v_first[v_place] := cardinality(v_taken);
                    v_load[v_place] := 1;
                END IF;
            END IF;
            v_reserve := v_reserve || v_unit;
            v_units := ARRAY[v_units[1] - v_unit, v_units[2] - v_unit];
            EXIT WHEN v_j.lost > 0;     -- it runs alone
        END LOOP;
        -- A suspect that may not run now (its lane's share is used up) must not keep the others
        -- waiting.
        CONTINUE WHEN p_empty
            AND v_round = 1
            AND cardinality(v_taken) = 0
            AND cardinality(v_full) = 0;
        EXIT WHEN cardinality(v_full) = 0
            AND NOT (v_open AND v_round = 1 AND cardinality(v_seen) >= v_asked);
        UPDATE livewell.job j SET state = 'held', held_by = 'g' WHERE j.id = ANY (v_full);
        EXIT WHEN v_used >= v_rooms[1] AND NOT v_open OR cardinality(v_taken) >= p_room.jobs;
    END LOOP;

    IF cardinality(v_taken) = 0 AND p_room.failing_until > p_now THEN
        v_reason := 'breaker';
        v_wait := extract(epoch FROM p_room.failing_until - p_now);
    ELSIF cardinality(v_seen) = 0 THEN
        v_reason := 'group';
    END IF;
    RETURN ROW(v_taken, v_calls, v_reserve, v_used, coalesce(v_reason, 'rate'), v_wait);
END
$$;
COMMENT ON FUNCTION livewell.pick_limited IS
    'Picks the jobs of a limited queue that may run now, and puts them into calls.';
REVOKE ALL ON FUNCTION livewell.pick_limited FROM PUBLIC;
