-- 0.8.0: one act on every job or dead letter that matches a filter, done in pages by workers.
-- Never edited after release; changes are a new numbered file.

CREATE TABLE livewell.bulk_act (
    id          bigint      GENERATED ALWAYS AS IDENTITY,
    asked_at    timestamptz NOT NULL,
    before_at   timestamptz NOT NULL,               -- what was made or died later is not touched
    stepped_at  timestamptz NOT NULL,               -- when a worker last tried a page of it
    rest_until  timestamptz,                        -- after a page that was broken off: not before
    ended_at    timestamptz,
    from_id     bigint      NOT NULL,               -- the lowest id when it was asked for
    up_to_id    bigint      NOT NULL,               -- the highest
    cursor_id   bigint      NOT NULL DEFAULT 0,     -- everything up to here was looked at
    expected    bigint      NOT NULL,               -- as counted beforehand, 10,000 at most
    done        bigint      NOT NULL DEFAULT 0,
    skipped     bigint      NOT NULL DEFAULT 0,     -- gone or changed meanwhile, key taken, locked
    busy_ids    bigint[]    NOT NULL DEFAULT '{}',  -- locked by others: tried once more at the end
    failures    integer     NOT NULL DEFAULT 0,     -- pages in a row that could not be done
    broken_off  integer     NOT NULL DEFAULT 0,     -- pages in a row that the server or a deadline ended
    how         text COLLATE "C" NOT NULL DEFAULT 'exact',  -- what expected is: see count_matching
    action      text COLLATE "C" NOT NULL,
    state       text COLLATE "C" NOT NULL DEFAULT 'running',
    request_key text COLLATE "C",                   -- the caller's: repeated, the same act
    asked_by    text        NOT NULL,
    filter      jsonb       NOT NULL,
    error       text,
    CONSTRAINT bulk_act_pkey PRIMARY KEY (id),
    CONSTRAINT bulk_act_action_check CHECK (action IN ('cancel', 'hasten', 'redrive', 'discard')),
    CONSTRAINT bulk_act_how_check CHECK (how IN ('exact', 'more', 'looked')),
    CONSTRAINT bulk_act_state_check CHECK (state IN ('running', 'done', 'cancelled', 'failed')),
    CONSTRAINT bulk_act_ended_check CHECK ((state = 'running') = (ended_at IS NULL)),
    CONSTRAINT bulk_act_bounds_check CHECK (
        octet_length(filter::text) <= 2000 AND octet_length(request_key) BETWEEN 1 AND 200
        AND cardinality(busy_ids) <= 10000
    )
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE livewell.bulk_act IS
    'Acts on all that match a filter: asked for by a person, done page by page by any worker.';
-- Two people who ask for the same at once get one act.
CREATE UNIQUE INDEX bulk_act_running_idx ON livewell.bulk_act (action, filter)
    WHERE state = 'running';
CREATE UNIQUE INDEX bulk_act_request_idx ON livewell.bulk_act (request_key)
    WHERE request_key IS NOT NULL;
CREATE INDEX bulk_act_ended_idx ON livewell.bulk_act (ended_at) WHERE ended_at IS NOT NULL;

-- match_jobs and match_dead → step_bulk_act, count_matching: a bounded look at a table, by id.
CREATE TYPE livewell.match_page AS (
    ids         bigint[],       -- what matches
    cursor_id   bigint,         -- where the next look begins
    looked      integer,        -- rows that were looked at
    is_last     boolean         -- there is nothing behind
);
COMMENT ON TYPE livewell.match_page IS
    'What a bounded look for matching jobs or dead letters found.';
REVOKE ALL ON TYPE livewell.match_page FROM PUBLIC;
