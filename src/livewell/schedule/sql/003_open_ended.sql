-- 0.7.0: schedules whose runs belong to the database instead of a process: a run of hours goes on
-- through any number of restarts. Never edited after release; changes are a new numbered file.

ALTER TABLE livewell.schedule
    -- its runs have no handler and no lease; whoever does the work ends them (count_open_run)
    ADD COLUMN open_ended boolean NOT NULL DEFAULT false,
    -- the work cannot be done now: its slots wait, and none of them is late
    ADD COLUMN held_at timestamptz;
