-- 0.7.0: what the steps of claim_limited hand to each other.
-- Never edited after release; changes are a new numbered file.

-- measure_room → pick_limited: what may start now.
CREATE TYPE livewell.limited_room AS (
    calls               integer,        -- calls that may start; at most 0: none, and the reason
    background_calls    integer,        -- for both lanes together when lane 1 asks; NULL: as calls
    jobs                integer,        -- jobs, of however many calls
    running             text[],         -- queues that share the limiter
    credential          text,           -- the credential with the most room; NULL: no limiter
    probe               boolean,        -- its breaker is half open: one call tries
    failing_until       timestamptz,    -- keys that are failing may be that call from then on
    units               bigint,         -- what the budget leaves; NULL: no budget
    background_units    bigint,         -- and what lane 1 may use of it
    estimates           jsonb,          -- units that a call is expected to use, by kind
    reason              text,           -- what stands in the way, if anything does
    wait_seconds        float8          -- until it is worth asking again, if that is known
);
COMMENT ON TYPE livewell.limited_room IS 'What a limited queue may start now.';
REVOKE ALL ON TYPE livewell.limited_room FROM PUBLIC;

-- pick_limited → claim_limited: what is taken. The three arrays have one entry per job.
CREATE TYPE livewell.limited_pick AS (
    jobs                bigint[],
    calls               bigint[],       -- the place, in jobs, of the first job of its call
    units               bigint[],       -- what it is expected to use
    n_calls             integer,
    reason              text,           -- why there are no jobs
    wait_seconds        float8
);
COMMENT ON TYPE livewell.limited_pick IS 'The jobs that a claim of a limited queue takes.';
REVOKE ALL ON TYPE livewell.limited_pick FROM PUBLIC;
