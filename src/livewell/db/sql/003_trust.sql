-- 0.6.0: who did what by hand.
-- Never edited after release; changes are a new numbered file.

-- Who did what by hand (R25): one row for each act of an operator that changes how the system runs.
CREATE TABLE livewell.audit (
    id          bigint      GENERATED ALWAYS AS IDENTITY,
    at          timestamptz NOT NULL,
    actor       text        NOT NULL,           -- key:<id>, jwt:<issuer>:<sub>, cli:<user>@<machine>, or python
    login       text        NOT NULL,           -- of the database, as it was opened
    action      text COLLATE "C" NOT NULL,      -- upstreams.resume
    subject     text        NOT NULL,           -- what it was done to
    arguments   jsonb       NOT NULL,
    answer      text        NOT NULL,           -- what became of it
    CONSTRAINT audit_pkey PRIMARY KEY (id),
    CONSTRAINT audit_bounds_check CHECK (octet_length(actor) <= 800 AND octet_length(action) <= 100 AND octet_length(subject) <= 800 AND pg_column_size(arguments) <= 4000 AND octet_length(answer) <= 800)
);
COMMENT ON TABLE livewell.audit IS 'What operators did, when and with which arguments; kept for audit_days.';
CREATE INDEX audit_at_idx ON livewell.audit (at);
