-- One row for each program that reports.
CREATE TABLE livewell.beacon (
    name            text        PRIMARY KEY CHECK (octet_length(name) BETWEEN 1 AND 200),
    every_seconds   float8      NOT NULL CHECK (every_seconds > 0),
    seen_at         timestamptz NOT NULL
);
COMMENT ON TABLE livewell.beacon IS 'Programs elsewhere, and when each last said that it is alive.';
