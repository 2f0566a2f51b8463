-- The last two days, minute by minute. Never edited after release; changes are a new numbered file.

CREATE TABLE livewell.state_minute (
    minute      timestamptz PRIMARY KEY,
    figures     jsonb       NOT NULL,       -- see functions/minutes/record_minute.sql
    CONSTRAINT state_minute_bounds_check CHECK (pg_column_size(figures) <= 8000)
);
COMMENT ON TABLE livewell.state_minute IS
    'A few figures of the system state for each minute, kept for two days; the lines of the dashboard.';
