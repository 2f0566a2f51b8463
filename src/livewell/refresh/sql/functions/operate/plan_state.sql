-- What a plan is computed from, as one document: who watches how many keys with which time to live,
-- what a key of each type costs as measured, and what each upstream allows (X4).
--
-- Called by: refresh/plan/report.py, for `livewell plan` and GET /v1/plan. The arithmetic is in
--            refresh/plan/demand.py.
-- Reads all subscriptions: for people who ask, never on the way of a refresh (contract 7). 100,000
-- sessions with 300,000 subscriptions over 38,000 keys: 1.1 to 2.3 s on two busy cores.
-- Bounds:    c_subscriptions_max subscriptions and c_groups_max groups are looked at, c_types_max
--            types; cut says that there were more.
CREATE OR REPLACE FUNCTION livewell.plan_state()
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    c_subscriptions_max CONSTANT integer := 2000000;
    c_groups_max        CONSTANT integer := 5000;
    c_types_max         CONSTANT integer := 1000;
    v_now       timestamptz := livewell.now();
    v_groups    jsonb;
    v_types     jsonb;
    v_upstreams jsonb;
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION 'a plan is made on the primary only; this server is a replica'
        USING ERRCODE = 'LW001';
    END IF;
    v_groups := livewell.plan_groups(v_now, c_subscriptions_max, c_groups_max, c_types_max);
    v_types := livewell.plan_types(v_now, c_types_max);
    v_upstreams := livewell.plan_upstreams(v_now, c_types_max);
    RETURN jsonb_build_object(
        'at', v_now, 'groups', v_groups, 'types', v_types, 'upstreams', v_upstreams,
        'cut', jsonb_array_length(v_groups) >= c_groups_max
                OR jsonb_array_length(v_types) >= c_types_max
               OR (
                   SELECT count(*)
                   FROM (
                       SELECT b.data_type FROM livewell.subscription b
                       LIMIT c_subscriptions_max) s) >= c_subscriptions_max);
END
$$;
COMMENT ON FUNCTION livewell.plan_state IS
    'Demand by type, time to live and viewers, measured costs, and what each upstream allows: what '
    'a plan is computed from.';
REVOKE ALL ON FUNCTION livewell.plan_state FROM PUBLIC;
