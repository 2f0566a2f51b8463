-- 0.6.0: order by viewers over everything that is due, and what a reading needs to turn by itself.
-- Never edited after release; changes are a new numbered file.

-- What `why` says of answers that brought nothing: how many in a row, when the last came, and since when the upstream answers with older data than is stored (X8).
ALTER TABLE livewell.ledger ADD COLUMN tries integer NOT NULL DEFAULT 0;        -- answers since the last good one: refused, failed or older
ALTER TABLE livewell.ledger ADD COLUMN tried_at timestamptz;                    -- of the last of them
ALTER TABLE livewell.ledger ADD COLUMN older_since timestamptz;                 -- the first of a row of older answers
ALTER TABLE livewell.ledger ADD COLUMN older_source_at timestamptz;             -- what the source says of its time in the last one

-- The order by viewers and waiting holds over everything that is due (X2): of each class the oldest are read, see due_candidates. Existing rows count as watched by one until they are counted.
ALTER TABLE livewell.ledger ADD COLUMN demand_class smallint NOT NULL DEFAULT 1;    -- 0: nobody when last counted; n: 2ⁿ⁻¹ to 2ⁿ - 1 viewers, up to 10; negative: the same of a scheduled type (background). A hint, never a count
CREATE INDEX ledger_class_idx ON livewell.ledger (upstream, demand_class, due_at) WHERE due_at IS NOT NULL;

-- R3: strangers share budgets of keys that nobody knew, by public key and by address, whatever number of sessions they open. Names are hashed with a salt of this database: no address is stored.
ALTER TABLE livewell.viewer_session ADD COLUMN origin text;        -- of somebody anonymous: hashes of its public key and its address; NULL: a user, or opened by 0.5.0
CREATE TABLE livewell.cold_salt (
    one             boolean     PRIMARY KEY DEFAULT true,
    salt            bytea       NOT NULL,
    CONSTRAINT cold_salt_one_check CHECK (one)
);
COMMENT ON TABLE livewell.cold_salt IS 'What names of strangers are hashed with; one row, made once.';
INSERT INTO livewell.cold_salt (salt) VALUES (decode(replace(concat(gen_random_uuid(), gen_random_uuid()), '-', ''), 'hex'));
CREATE TABLE livewell.cold_budget (
    minute          timestamptz NOT NULL,
    spent           integer     NOT NULL,
    name            bytea       NOT NULL,
    CONSTRAINT cold_budget_pkey PRIMARY KEY (name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE livewell.cold_budget IS 'Keys that nobody knew, asked for in this minute by the strangers of one public key or one address (R3).';
DO $drop$
BEGIN
    IF to_regprocedure('livewell.open_session(uuid, text, integer)') IS NOT NULL THEN
        DROP FUNCTION livewell.open_session(uuid, text, integer);
    END IF;
END
$drop$;
-- What prune_refresh looks for. status_at changes whenever version does, so updates lose nothing by it.
CREATE INDEX ledger_empty_idx ON livewell.ledger (status_at) WHERE version = 0;
