-- Count what became of refreshes, by type and outcome, warn of what was refused, and let the sizes learn.
--
-- Called by: store_refreshes, as one of its last steps: the counters are shared by the whole fleet, and locked until the commit.
-- p_counts:    [{type, outcome, wire, decoded, error}].
-- Sizes:       bytes per key and type, in limiter_estimate under the kind livewell.refresh:<type>; dispatch reserves by them. 0.9 old + 0.1 new once per batch, the first as it is (R16).
CREATE OR REPLACE FUNCTION livewell.count_refreshes(p_counts jsonb, p_now timestamptz)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET enable_seqscan = off
AS $$
BEGIN
    INSERT INTO livewell.refresh_count AS c (hour, data_type, outcome, n, wire_bytes, decoded_bytes)
    SELECT date_trunc('hour', p_now, 'UTC'), g.type, left(g.outcome, 40), count(*), coalesce(sum(g.wire), 0), coalesce(sum(g.decoded), 0)
    FROM jsonb_to_recordset(p_counts) AS g (type text, outcome text, wire bigint, decoded bigint)
    WHERE g.type IS NOT NULL AND g.outcome IS NOT NULL
    GROUP BY g.type, left(g.outcome, 40) ORDER BY g.type, left(g.outcome, 40)
    ON CONFLICT (hour, data_type, outcome) DO UPDATE SET n = c.n + excluded.n, wire_bytes = c.wire_bytes + excluded.wire_bytes, decoded_bytes = c.decoded_bytes + excluded.decoded_bytes;

    INSERT INTO livewell.limiter_estimate AS e (limiter, kind, units)
    SELECT d.upstream, 'livewell.refresh:' || d.name,
           sum(CASE u.counts WHEN 'wire' THEN g.wire WHEN 'decoded' THEN g.decoded ELSE greatest(g.wire, g.decoded) END)::float8 / count(*)
    FROM jsonb_to_recordset(p_counts) AS g (type text, outcome text, wire bigint, decoded bigint)
    JOIN livewell.data_type d ON d.name = g.type JOIN livewell.upstream u ON u.name = d.upstream JOIN livewell.limiter l ON l.name = d.upstream
    WHERE g.outcome IN ('stored', 'corrected', 'unchanged')
    GROUP BY d.upstream, d.name HAVING sum(greatest(g.wire, g.decoded)) > 0 ORDER BY d.upstream, d.name
    ON CONFLICT (limiter, kind) DO UPDATE SET units = 0.9 * e.units + 0.1 * excluded.units;

    PERFORM livewell.warn('refresh', w.type || ': ' || w.outcome, w.error)
    FROM (SELECT g.type, left(g.outcome, 40) AS outcome, max(g.error) AS error
          FROM jsonb_to_recordset(p_counts) AS g (type text, outcome text, error text)
          WHERE g.outcome NOT IN ('stored', 'corrected', 'unchanged', 'missing', 'type_changed', 'singly', 'forgotten', 'fenced')
          GROUP BY g.type, left(g.outcome, 40) ORDER BY g.type, left(g.outcome, 40)) w;
END
$$;
COMMENT ON FUNCTION livewell.count_refreshes IS 'Counts refreshes by type and outcome, warns of refusals and teaches the size estimates.';
REVOKE ALL ON FUNCTION livewell.count_refreshes FROM PUBLIC;
