-- Make the stored sessions of an exchange those that are given, from the first given opening on;
-- what is older stays.
--
-- Called by: `livewell types apply` for every type that names a calendar, before the type itself
--            (refresh/registry/exchange_calendar.py reads the file that comes with the package).
-- Writes only what differs: the second time it costs a comparison.
CREATE OR REPLACE FUNCTION livewell.load_sessions(
    p_calendar text, p_opens timestamptz[], p_closes timestamptz[])
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    v_changed   integer;
    v_removed   integer;
BEGIN
    INSERT INTO livewell.exchange_session AS s (calendar, opens_at, closes_at)
    SELECT p_calendar, g.opens_at, g.closes_at
    FROM unnest(p_opens, p_closes) AS g (opens_at, closes_at)
    ON CONFLICT (calendar, opens_at) DO UPDATE SET closes_at = excluded.closes_at
    WHERE s.closes_at <> excluded.closes_at;
    GET DIAGNOSTICS v_changed = ROW_COUNT;
    DELETE FROM livewell.exchange_session s
    WHERE s.calendar = p_calendar AND s.opens_at >= (SELECT min(o) FROM unnest(p_opens) AS o)
      AND s.opens_at <> ALL (p_opens);
    GET DIAGNOSTICS v_removed = ROW_COUNT;
    RETURN v_changed + v_removed;
END
$$;
COMMENT ON FUNCTION livewell.load_sessions IS
    'Brings the stored sessions of one exchange up to date; answers how many rows changed.';
REVOKE ALL ON FUNCTION livewell.load_sessions FROM PUBLIC;
