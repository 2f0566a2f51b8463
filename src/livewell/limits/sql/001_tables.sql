-- Limiters: how much of an outside resource may be used, and what has been used. One limiter per resource; rate, budget and breaker are kept per credential.
-- Never edited after release; changes are a new numbered file.

CREATE TABLE livewell.limiter (
    name                    text COLLATE "C" PRIMARY KEY,
    -- Rate: so many calls in any window of so many seconds, as the receiver sees it.
    rate_calls              integer,
    rate_seconds            float8,
    burst                   integer     NOT NULL DEFAULT 10,    -- calls that may go at once; beyond that they are paced
    reserve                 float8      NOT NULL DEFAULT 0.1,   -- share of the rate that only lane 0 may use
    permit_seconds          float8      NOT NULL DEFAULT 1,     -- how long after the claim was sent the call may still be made
    -- Budget: so many units in a rolling span, or in a day that begins at a time in a zone.
    budget_units            bigint,
    budget_unit             text COLLATE "C",
    budget_seconds          float8,
    budget_resets           time,
    budget_zone             text COLLATE "C",
    budget_stop             float8      NOT NULL DEFAULT 0.95,  -- share of the budget at which everything stops
    budget_background_stop  float8      NOT NULL DEFAULT 0.8,   -- and lane 1
    estimate_units          bigint      NOT NULL DEFAULT 1,     -- what a call of an unknown kind is taken to cost
    -- Concurrency, over all credentials.
    concurrency             integer,
    per_key                 integer,                            -- running at once for one group key, over all queues of the limiter
    -- Breaker: so many failures that are also such a share of the calls in so many seconds, or so many in a row.
    breaker_failures        integer,                            -- NULL: no breaker
    breaker_share           float8      NOT NULL DEFAULT 0.2,
    breaker_seconds         float8      NOT NULL DEFAULT 600,
    breaker_in_row          integer     NOT NULL DEFAULT 5,
    open_seconds            float8      NOT NULL DEFAULT 60,    -- doubling
    open_seconds_max        float8      NOT NULL DEFAULT 900,
    wall_seconds            float8      NOT NULL DEFAULT 21600, -- after the upstream said that its bandwidth is used up
    created_at              timestamptz NOT NULL,
    CONSTRAINT limiter_name_check       CHECK (name ~ '^[a-z][a-z0-9_.-]{0,62}$'),
    CONSTRAINT limiter_rate_check       CHECK ((rate_calls IS NULL) = (rate_seconds IS NULL) AND rate_calls BETWEEN 1 AND 1000000 AND rate_seconds BETWEEN 0.1 AND 86400),
    CONSTRAINT limiter_burst_check      CHECK (burst BETWEEN 1 AND 1000000),
    CONSTRAINT limiter_reserve_check    CHECK (reserve >= 0 AND reserve < 1),
    CONSTRAINT limiter_permit_check     CHECK (permit_seconds > 0 AND permit_seconds <= 60),
    CONSTRAINT limiter_budget_check     CHECK ((budget_units IS NULL) = (budget_unit IS NULL) AND budget_units > 0 AND budget_unit IN ('bytes', 'calls', 'tokens')
                                               AND (budget_units IS NULL OR (budget_seconds IS NULL) <> (budget_resets IS NULL))
                                               AND (budget_resets IS NULL) = (budget_zone IS NULL) AND budget_seconds BETWEEN 3600 AND 34560000),
    CONSTRAINT limiter_stop_check       CHECK (budget_stop > 0 AND budget_stop <= 1 AND budget_background_stop > 0 AND budget_background_stop <= budget_stop),
    CONSTRAINT limiter_estimate_check   CHECK (estimate_units >= 0),
    CONSTRAINT limiter_concurrency_check CHECK (concurrency BETWEEN 1 AND 100000 AND per_key BETWEEN 1 AND 100000),
    CONSTRAINT limiter_breaker_check    CHECK (breaker_failures > 0 AND breaker_share >= 0 AND breaker_share <= 1 AND breaker_seconds BETWEEN 1 AND 86400 AND breaker_in_row > 0
                                               AND open_seconds > 0 AND open_seconds_max BETWEEN open_seconds AND 604800 AND wall_seconds BETWEEN 1 AND 604800)
);
COMMENT ON TABLE livewell.limiter IS 'The limits of one outside resource. Its row is the lock under which calls are granted and booked.';

-- No secret is stored: a credential is a name, and the application knows what it stands for.
CREATE TABLE livewell.limiter_credential (
    limiter         text COLLATE "C" NOT NULL REFERENCES livewell.limiter ON DELETE CASCADE,
    name            text COLLATE "C" NOT NULL,
    active          boolean     NOT NULL DEFAULT true,
    paced_to        timestamptz,                    -- the instant up to which calls are already spent, at the even pace of the rate
    quiet_until     timestamptz,                    -- the upstream asked for silence (Retry-After, nothing remaining)
    learnt_calls    integer,                        -- a lower rate than ours, learnt from answers
    breaker         text COLLATE "C" NOT NULL DEFAULT 'closed',
    open_until      timestamptz,
    opened          smallint    NOT NULL DEFAULT 0, -- times opened without a success between: doubles the pause
    opened_fence    bigint      NOT NULL DEFAULT 0, -- calls claimed under this fence or an older one say nothing about now
    probe_fence     bigint,                         -- the one call let through while half open; in flight iff a running job has this fence
    failures_in_row integer     NOT NULL DEFAULT 0,
    CONSTRAINT limiter_credential_pkey PRIMARY KEY (limiter, name),
    CONSTRAINT limiter_credential_name_check CHECK (octet_length(name) <= 200),
    CONSTRAINT limiter_credential_breaker_check CHECK (breaker IN ('closed', 'open', 'half_open') AND (breaker = 'closed') = (open_until IS NULL))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE livewell.limiter_credential IS 'What is known about one credential of a limiter: pace, breaker, what the upstream said. One row with an empty name where there are no credentials.';

CREATE TABLE livewell.limiter_grant (
    limiter         text COLLATE "C" NOT NULL,
    credential      text COLLATE "C" NOT NULL,
    at              timestamptz NOT NULL,
    calls           integer     NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE livewell.limiter_grant IS 'Permits given, kept for one window: their sum is what the rate compares with.';
CREATE INDEX limiter_grant_idx ON livewell.limiter_grant (limiter, credential, at) INCLUDE (calls);

CREATE TABLE livewell.limiter_usage (
    limiter         text COLLATE "C" NOT NULL,
    credential      text COLLATE "C" NOT NULL,
    since           timestamptz NOT NULL,           -- the hour, or the reset within it
    units           bigint      NOT NULL,
    calls           bigint      NOT NULL,           -- claims that were settled; a call of fifty jobs is fifty
    CONSTRAINT limiter_usage_pkey PRIMARY KEY (limiter, credential, since)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE livewell.limiter_usage IS 'Units used and claims settled, by the hour.';

CREATE TABLE livewell.limiter_estimate (
    limiter         text COLLATE "C" NOT NULL REFERENCES livewell.limiter ON DELETE CASCADE,
    kind            text COLLATE "C" NOT NULL,
    units           float8      NOT NULL,
    CONSTRAINT limiter_estimate_pkey PRIMARY KEY (limiter, kind)
) WITH (fillfactor = 50);
COMMENT ON TABLE livewell.limiter_estimate IS 'What a job of a kind is expected to use: 0.9 old + 0.1 new per settled batch, the first measurement as it is (R16).';

CREATE TABLE livewell.limiter_calls (
    limiter         text COLLATE "C" NOT NULL,
    credential      text COLLATE "C" NOT NULL,
    since           timestamptz NOT NULL,           -- ten seconds each
    calls           integer     NOT NULL,
    failures        integer     NOT NULL,
    CONSTRAINT limiter_calls_pkey PRIMARY KEY (limiter, credential, since)
) WITH (fillfactor = 70);
COMMENT ON TABLE livewell.limiter_calls IS 'How calls ended, for the breaker.';

CREATE TABLE livewell.usage_settled (
    fence           bigint      NOT NULL,
    units           bigint      NOT NULL,
    at              timestamptz NOT NULL,
    CONSTRAINT usage_settled_pkey PRIMARY KEY (fence)
);
COMMENT ON TABLE livewell.usage_settled IS 'Which claims have been charged, kept a day: a late report books only the difference.';
CREATE INDEX usage_settled_at_idx ON livewell.usage_settled (at);
