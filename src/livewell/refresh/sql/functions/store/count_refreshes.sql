-- Count what became of refreshes, by type and outcome, warn of what was refused, and let the sizes
-- learn.
--
-- Called by: store_refreshes, as one of its last steps: the counters are shared by the whole fleet,
--            and locked until the commit.
-- Calls:       the first key of a call carries its bytes, and the head of an answer is counted with
--              them: so many keys with bytes, so many calls that were answered.
-- Sizes:       bytes per key and type, in limiter_estimate under the kind livewell.refresh:<type>;
--              dispatch reserves by them. 0.9 old + 0.1 new once per batch, the first as it is
--              (R16).
CREATE OR REPLACE FUNCTION livewell.count_refreshes(
    p_types text[], p_outcomes text[], p_wire bigint[], p_decoded bigint[], p_errors text[],
    p_now timestamptz)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    c_quiet CONSTANT text[] :=
        '{stored,corrected,unchanged,missing,type_changed,singly,unproven,forgotten,fenced}';
BEGIN
    INSERT INTO livewell.refresh_count AS c (
        hour, data_type, outcome, n, wire_bytes, decoded_bytes, calls)
    SELECT date_trunc('hour', p_now, 'UTC'), g.type, left(g.outcome, 40), count(*),
           coalesce(sum(g.wire), 0), coalesce(sum(g.decoded), 0),
           count(*) FILTER (WHERE g.wire > 0)
    FROM unnest(p_types, p_outcomes, p_wire, p_decoded) AS g (type, outcome, wire, decoded)
    WHERE g.type IS NOT NULL AND g.outcome IS NOT NULL
    GROUP BY g.type, left(g.outcome, 40) ORDER BY g.type, left(g.outcome, 40)
    ON CONFLICT (hour, data_type, outcome) DO UPDATE SET n = c.n + excluded.n,
    wire_bytes = c.wire_bytes + excluded.wire_bytes,
    decoded_bytes = c.decoded_bytes + excluded.decoded_bytes, calls = c.calls + excluded.calls;

    INSERT INTO livewell.limiter_estimate AS e (limiter, kind, units)
    SELECT d.upstream, 'livewell.refresh:' || d.name, w.wire_units
    FROM (
        SELECT g.type, sum(g.wire)::float8 / count(*) AS wire,
               sum(g.decoded)::float8 / count(*) AS decoded
          FROM unnest(p_types, p_outcomes, p_wire, p_decoded) AS g (type, outcome, wire, decoded)
          WHERE g.outcome IN ('stored', 'corrected', 'unchanged') GROUP BY g.type) g
    JOIN livewell.data_type d ON d.name = g.type
    JOIN livewell.upstream u ON u.name = d.upstream
    JOIN livewell.limiter l ON l.name = d.upstream
    CROSS JOIN LATERAL (
        SELECT
            CASE u.counts
                WHEN 'wire' THEN g.wire
                WHEN 'decoded' THEN g.decoded
                ELSE greatest(g.wire, g.decoded)
            END AS wire_units) w
    WHERE w.wire_units > 0 ORDER BY d.upstream, d.name
    ON CONFLICT (limiter, kind) DO UPDATE SET units = 0.9 * e.units + 0.1 * excluded.units;

    IF NOT p_outcomes <@ c_quiet THEN
        PERFORM livewell.warn('refresh', w.type || ': ' || w.outcome, w.error)
        FROM (
            SELECT g.type, left(g.outcome, 40) AS outcome, max(g.error) AS error
            FROM unnest(p_types, p_outcomes, p_errors) AS g (type, outcome, error)
              WHERE g.outcome <> ALL (c_quiet) GROUP BY g.type, left(g.outcome, 40)
              ORDER BY g.type, left(g.outcome, 40)) w;
    END IF;
END
$$;
COMMENT ON FUNCTION livewell.count_refreshes IS
    'Counts refreshes by type and outcome, warns of refusals and teaches the size estimates.';
REVOKE ALL ON FUNCTION livewell.count_refreshes FROM PUBLIC;
