"""The due check of the design that Livewell replaces, on the same data.

One symbol after the other, and for each symbol one type after the other.

Its tables are made from ours: subscribers as one row per user and symbol with the list of types, a
data table for each type with the time of its last fetch, and a queue that is looked into before
anything is put there. For every pair it looks the type up, writes a statement for its table, and
runs that in a block of its own, so that one that fails does not end the walk.
"""

from __future__ import annotations

from bench.refresh.crowd import TYPES

_TABLES = """
CREATE SCHEMA old_way;
CREATE TABLE old_way.watcher AS
    SELECT user_id, key AS symbol, array_agg(data_type) AS types FROM livewell.subscription GROUP BY user_id, key;
ALTER TABLE old_way.watcher ADD PRIMARY KEY (user_id, symbol);
CREATE INDEX ON old_way.watcher (symbol);
CREATE TABLE old_way.kind (name text PRIMARY KEY, ttl_minutes integer NOT NULL, bytes bigint NOT NULL);
CREATE TABLE old_way.wanted (
    id bigserial PRIMARY KEY, symbol text NOT NULL, kind text NOT NULL, state text NOT NULL DEFAULT 'waiting', viewers integer NOT NULL, bytes bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE UNIQUE INDEX ON old_way.wanted (symbol, kind) WHERE state IN ('waiting', 'running');
CREATE FUNCTION old_way.is_old(p_fetched timestamptz, p_minutes integer) RETURNS boolean LANGUAGE plpgsql STABLE
    AS $f$ BEGIN RETURN p_fetched IS NULL OR p_fetched < now() - make_interval(mins => p_minutes); END $f$;
"""
_DATA = """
CREATE TABLE old_way.{0} AS SELECT key AS symbol, checked_at AS fetched_at, NULL::integer AS ttl_minutes FROM livewell.ledger WHERE data_type = '{0}';
ALTER TABLE old_way.{0} ADD PRIMARY KEY (symbol);
INSERT INTO old_way.kind VALUES ('{0}', 1440, 700);
"""
_WALK = """
CREATE FUNCTION old_way.check_all() RETURNS integer LANGUAGE plpgsql AS $f$
DECLARE
    v_symbol text;
    v_name   text;
    v_kind   old_way.kind;
    v_n      integer;
    v_queued integer := 0;
BEGIN
    FOR v_symbol IN SELECT DISTINCT w.symbol FROM old_way.watcher w LOOP
        FOR v_name IN SELECT DISTINCT unnest(w.types) FROM old_way.watcher w WHERE w.symbol = v_symbol LOOP
            SELECT * INTO v_kind FROM old_way.kind k WHERE k.name = v_name;
            CONTINUE WHEN NOT FOUND;
            BEGIN
                EXECUTE format(
                    'INSERT INTO old_way.wanted (symbol, kind, viewers, bytes)
                     SELECT %1$L, %2$L, count(DISTINCT w.user_id), %3$s
                     FROM old_way.%2$I d JOIN old_way.watcher w ON w.symbol = d.symbol AND %2$L = ANY (w.types)
                     WHERE d.symbol = %1$L AND w.symbol = %1$L AND old_way.is_old(d.fetched_at, coalesce(d.ttl_minutes, %4$s))
                       AND NOT EXISTS (SELECT FROM old_way.wanted q WHERE q.symbol = %1$L AND q.kind = %2$L AND q.state IN (''waiting'', ''running''))
                     GROUP BY w.symbol HAVING count(DISTINCT w.user_id) > 0
                     ON CONFLICT DO NOTHING', v_symbol, v_kind.name, v_kind.bytes, v_kind.ttl_minutes);
                GET DIAGNOSTICS v_n = ROW_COUNT;
                v_queued := v_queued + v_n;
            EXCEPTION WHEN others THEN
                RAISE WARNING '% %: %', v_symbol, v_name, SQLERRM;
            END;
        END LOOP;
    END LOOP;
    RETURN v_queued;
END
$f$;
"""
MAKE = _TABLES + "".join(_DATA.format(name) for name in TYPES) + _WALK
ANALYZE = ("old_way.watcher", "old_way.kind", "old_way.wanted", *(f"old_way.{name}" for name in TYPES))
CHECK = "SELECT old_way.check_all()"
