-- Make sure a limiter exists with these limits and credentials. What it has used, learnt and broken
-- stays as it is (G6).
--
-- Called by: apply_upstream; clients and workers at start. p_limits has the columns of
--            livewell.limiter; what it leaves out is NULL or the column's default.
-- Writes only when something differs: a fleet that starts together must not fight over one row.
-- Credentials that are no longer named become inactive, so what they used is not forgotten.
CREATE OR REPLACE FUNCTION livewell.declare_limiter(
    p_name text, p_limits jsonb, p_credentials text[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_now       timestamptz := livewell.now();
    v_wanted    livewell.limiter;
    v_is        livewell.limiter;
    v_names     text[] := CASE
        WHEN cardinality(p_credentials) > 0 THEN p_credentials
        ELSE ARRAY[''] END;
BEGIN
    INSERT INTO livewell.limiter (name, created_at) VALUES (p_name, v_now) ON CONFLICT DO NOTHING;
    SELECT * INTO v_is FROM livewell.limiter l WHERE l.name = p_name;
    SELECT * INTO v_wanted
    FROM jsonb_populate_record(
        NULL::livewell.limiter,
        jsonb_build_object(
            'burst', 10, 'reserve', 0.1, 'permit_seconds', 1, 'budget_stop', 0.95,
            'budget_background_stop', 0.8, 'estimate_units', 1, 'breaker_share', 0.2,
            'breaker_seconds', 600, 'breaker_in_row', 5, 'open_seconds', 60,
            'open_seconds_max', 900, 'wall_seconds', 21600, 'quiet_seconds_max', 900,
            'deadline_seconds', v_is.deadline_seconds
        ) || p_limits || jsonb_build_object('name', p_name, 'created_at', v_is.created_at)
    );
    IF v_wanted IS DISTINCT FROM v_is THEN
        PERFORM FROM livewell.limiter l WHERE l.name = p_name FOR UPDATE;
        DELETE FROM livewell.limiter_estimate e
        WHERE e.limiter = p_name AND v_wanted.budget_unit IS DISTINCT FROM v_is.budget_unit;
        UPDATE livewell.limiter l
        SET (
            rate_calls, rate_seconds, burst, reserve, permit_seconds, budget_units, budget_unit,
            budget_seconds, budget_resets, budget_zone, budget_stop, budget_background_stop,
            estimate_units, concurrency, per_key, breaker_failures, breaker_share, breaker_seconds,
            breaker_in_row, open_seconds, open_seconds_max, wall_seconds, quiet_seconds_max,
            deadline_seconds
        ) = (
            v_wanted.rate_calls, v_wanted.rate_seconds, v_wanted.burst, v_wanted.reserve,
            v_wanted.permit_seconds, v_wanted.budget_units, v_wanted.budget_unit,
            v_wanted.budget_seconds, v_wanted.budget_resets, v_wanted.budget_zone,
            v_wanted.budget_stop, v_wanted.budget_background_stop, v_wanted.estimate_units,
            v_wanted.concurrency, v_wanted.per_key, v_wanted.breaker_failures,
            v_wanted.breaker_share, v_wanted.breaker_seconds, v_wanted.breaker_in_row,
            v_wanted.open_seconds, v_wanted.open_seconds_max, v_wanted.wall_seconds,
            v_wanted.quiet_seconds_max, v_wanted.deadline_seconds
        )
        WHERE l.name = p_name;
    END IF;
    INSERT INTO livewell.limiter_credential (limiter, name)
    SELECT p_name, c FROM unnest(v_names) AS c
    ORDER BY c
    ON CONFLICT DO NOTHING;
    UPDATE livewell.limiter_credential c
    SET active = c.name = ANY (v_names)
    WHERE c.limiter = p_name AND c.active <> (c.name = ANY (v_names));
END
$$;
COMMENT ON FUNCTION livewell.declare_limiter IS
    'Creates a limiter or brings its limits and credentials up to date.';
REVOKE ALL ON FUNCTION livewell.declare_limiter FROM PUBLIC;
