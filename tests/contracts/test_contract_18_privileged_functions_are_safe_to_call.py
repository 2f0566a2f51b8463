"""Contract 18: privileged functions are safe to call (F-F2).

The catalog's side of it is in tests/sql/db/test_catalog.py.

Broken once, for real: with search_path = '' Postgres still looks for TYPES in pg_temp first, and
all three definer functions said `text`, `date` or `timestamptz` without a schema. A caller's own
domain of that name ran its CHECK as livewell_owner. Kept broken below.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from livewell.testing.processes import eventually
from tests.support.queue_sql import QueueSession
from tests.support.variants import variant

SESSION = "'c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd10'"
EXPORT, BATCH = "'c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd20'", "'c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd21'"
# An export of eve's in a batch of one; asked for again, it is the same.
ASK = (
    'SELECT livewell.request_exports(\'eve\', \'[{"id": "c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd20", "kind": "resume", '
    f'"document": "cv", "version": "1", "options": {{}}, "hash": "{"00" * 32}", "file_name": "cv.pdf"}}]\', '
    f'\'{{"bytes_max": 100000, "day_max": 100}}\', {BATCH})'
)
# Every definer function with a call that goes through its body; a new one fails the first test
# until it is here.
CALLS = {
    "warn": "SELECT livewell.warn('place', 'what', 'a sample')",
    "record_act": "SELECT livewell.record_act('me', 'x', 'y', '{\"a\": 1}'::pg_catalog.jsonb, 'done')",
    "audit_act": "SELECT livewell.audit_act('me', NULL, 'x', 'y', '{\"a\": 1}'::pg_catalog.jsonb, 'done', "
    "'{\"a\": 1}'::pg_catalog.jsonb, '{\"a\": 2}'::pg_catalog.jsonb, 1)",
    "prune_audit": "SELECT livewell.prune_audit(90, 10)",
    "raise_fences": "SELECT livewell.raise_fences()",
    "ensure_history_days": "SELECT livewell.ensure_history_days(40)",
    "drop_history_day": "SELECT livewell.drop_history_day(1)",
    "ensure_event_days": "SELECT livewell.ensure_event_days(40)",
    "drop_event_day": "SELECT livewell.drop_event_day(1, 1)",
    "raise_event_numbers": "SELECT livewell.raise_event_numbers()",
    "open_session": "SELECT livewell.open_session(gen_random_uuid(), 'eve'); SELECT "
    "livewell.open_session(gen_random_uuid(), 'public:AAAAAAAA@127.0.0.1', 1); "
    f"SELECT livewell.open_session({SESSION}, 'ann')",
    "heartbeat_session": f"SELECT livewell.heartbeat_session({SESSION}, 'ann')",
    "subscribe": f"SELECT livewell.subscribe({SESSION}, 'ann', '{{quote,quote}}', '{{PARKED,NEW}}', 1000, 5)",
    "unsubscribe": f"SELECT livewell.unsubscribe({SESSION}, 'ann', '{{quote}}', '{{NEW}}')",
    "read_through": "SELECT livewell.read_through('quote', 'COLD', 0, 'ann', 5); SELECT "
    "livewell.read_through('quote', 'PARKED', 0, 'ann', 5)",
    "read_key": "SELECT livewell.read_key('quote', 'COLDER', 0, 'ann', 5); SELECT livewell.read_key('quote', "
    "'PARKED', 0, 'ann', 5)",
    "close_session": f"SELECT livewell.close_session({SESSION}, 'ann')",
    "change_type": "SELECT livewell.change_type('quote', '2 minutes', 'scheduled', '0 2 * * *', 'UTC')",
    "count_viewers": "SELECT livewell.count_viewers('quote', 'PARKED')",
    "watched_keys": "SELECT livewell.watched_keys(100)",
    "sample_watched": "SELECT livewell.sample_watched(livewell.now())",
    "find_key": "SELECT livewell.find_key('AAAAAAAA')",
    "find_api_key": "SELECT livewell.find_api_key('AAAAAAAA')",
    "touch_key": "SELECT livewell.touch_key('AAAAAAAA')",
    "end_login": "SELECT livewell.end_login('CCCCCCCC')",
    "mint_key": "SELECT livewell.mint_key('DDDDDDDD', decode(repeat('00', 32), 'hex'), 'EEEEEEEE', "
    "decode(repeat('11', 32), 'hex'), 'x', '{view}', NULL, false, 3600)",
    "withdraw_keys": "SELECT livewell.withdraw_keys('DDDDDDDD', decode(repeat('00', 32), 'hex'), '{AAAAAAAA}', false)",
    "test_channel": "SELECT livewell.test_channel('traps')",
    "resolve_contact": "SELECT livewell.resolve_contact('acme', '{email,external_id}', '{Änn@Bücher.example,7}', "
    "'{\"name\": \"Ann\"}', 'request'); SELECT livewell.resolve_contact('acme', '{email}', '{bob@example.com}'); SELECT "
    "livewell.resolve_contact('acme', '{email,email}', '{änn@bücher.example,bob@example.com}')",
    "find_contact": "SELECT livewell.find_contact('acme', 'email', 'carl@example.com')",
    "show_contact": "SELECT livewell.show_contact('acme', 'c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd11')",
    "list_contacts": "SELECT livewell.list_contacts('acme', NULL, NULL, 10)",
    "list_contact_conflicts": "SELECT livewell.list_contact_conflicts('acme', 0, 10)",
    "decide_contact_conflict": "SELECT livewell.decide_contact_conflict('acme', 1001, 'merge', 'eve')",
    "unmerge_contact": "SELECT livewell.unmerge_contact('acme', 1001, 'eve')",
    "erase_contact": "SELECT livewell.erase_contact('acme', 'c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd11')",
    "set_identity_policy": "SELECT livewell.set_identity_policy('acme', 'phone', 5, 5, 'ask', '{x}', false, false)",
    "list_identity_policies": "SELECT livewell.list_identity_policies('acme')",
    "prune_contacts": "SELECT livewell.prune_contacts(10)",
    "state_contacts": "SELECT livewell.state_contacts()",
    "find_login_owner": "SELECT livewell.find_login_owner('AAAAAAAA')",
    "create_resume": "SELECT livewell.create_resume('ann', gen_random_uuid(), 'r', 'CV', '{}', 100, 10000000)",
    "change_resume": f"SELECT livewell.create_resume('eve', {SESSION}, NULL, 'CV', '{{}}', 100, 10000000); "
    f"SELECT livewell.change_resume('eve', {SESSION}, 1, 'CV', '[]', 1, 10000000); "
    f"SELECT livewell.change_resume('eve', {SESSION}, 2, 'CV', '[1]', 1, 10000000)",
    "show_resume": f"SELECT livewell.show_resume('eve', {SESSION}, NULL)",
    "list_resumes": "SELECT * FROM livewell.list_resumes('eve', NULL, NULL, 10)",
    "list_resume_versions": f"SELECT * FROM livewell.list_resume_versions('eve', {SESSION}, NULL, 10)",
    "delete_resume": f"SELECT livewell.delete_resume('eve', {SESSION})",
    "state_resumes": "SELECT livewell.state_resumes()",
    "request_exports": ASK,
    "show_export": f"{ASK}; SELECT livewell.show_export('eve', {EXPORT})",
    "show_export_batch": f"{ASK}; SELECT livewell.show_export_batch('eve', {BATCH})",
    "show_export_usage": f"{ASK}; SELECT livewell.show_export_usage('eve')",
    "list_exports": f"{ASK}; SELECT livewell.list_exports('eve', NULL, 10)",
    "list_export_kinds": "SELECT livewell.list_export_kinds()",
    "follow_exports": f"{ASK}; SELECT livewell.follow_exports('{{eve,eve}}', ARRAY[{EXPORT}, {BATCH}]::pg_catalog.uuid[], "
    "'{0,0}', '{f,t}')",
    "read_export_file": f"{ASK}; SELECT livewell.read_export_file('eve', {EXPORT}, true)",
    "read_export_files": f"{ASK}; SELECT livewell.read_export_files('eve', {BATCH})",
    "count_downloads": f"{ASK}; SELECT livewell.count_downloads('eve', ARRAY[{EXPORT}]::pg_catalog.uuid[])",
    "forget_export_file": "SELECT livewell.forget_export_file('eve', 'u/x/1.pdf')",
    "cancel_export": f"{ASK}; SELECT livewell.cancel_export('eve', {EXPORT})",
    "delete_export": f"{ASK}; SELECT livewell.delete_export('eve', {EXPORT})",
    "redeem_link": "SELECT livewell.redeem_link('BBBBBBBB', decode(repeat('00', 32), 'hex'), 'CCCCCCCC', "
    "decode(repeat('11', 32), 'hex'), 3600)",
}
# A type, a parked key, and a session that was silent for so long that its heartbeat un-parks.
VIEWED = """
INSERT INTO livewell.upstream (name, base_url, definition, version, applied_at) VALUES ('api', 'https://example.com', '{}', 1, now()) ON CONFLICT DO NOTHING;
INSERT INTO livewell.data_type (name, upstream, ttl, negative_ttl, strategy, rule, calendar, max_source_age, has_source_time, rows_kind, key_pattern, size_estimate, definition, columns, version, applied_at)
VALUES ('quote', 'api', '1 minute', '1 hour', 'on_demand', 'session', 'XNYS', '15 minutes', true, 'one', '[A-Z]+', 700, '{}', '[]', 1, now()) ON CONFLICT DO NOTHING;
INSERT INTO livewell.ledger (data_type, key, upstream, status_at, fetched_at, checked_at, source_at) VALUES ('quote', 'PARKED', 'api', now(), now(), now(), now()) ON CONFLICT DO NOTHING;
INSERT INTO livewell.viewer_session (id, seen_at, created_at, user_id) VALUES (livewell.session_hash('c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd10'), now() - interval '4 minutes', now(), 'ann') ON CONFLICT DO NOTHING;
INSERT INTO livewell.queue (name, created_at) VALUES ('refresh.api', now()) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS livewell_data.quote (key text PRIMARY KEY, price numeric);
ALTER TABLE livewell_data.quote OWNER TO livewell_owner;
INSERT INTO livewell.api_key (id, user_id, kind, name, scopes, secret_hash, created_at, expires_at) VALUES ('AAAAAAAA', 'key:AAAAAAAA', 'key', 'x', '{view}', decode(repeat('00', 32), 'hex'), now(), NULL),
    ('DDDDDDDD', 'key:DDDDDDDD', 'key', 'x', '{view,admin}', decode(repeat('00', 32), 'hex'), now(), NULL),
    ('BBBBBBBB', 'key:BBBBBBBB', 'link', 'x', '{view}', decode(repeat('00', 32), 'hex'), now(), now() + interval '1 hour') ON CONFLICT DO NOTHING;
SELECT livewell.declare_queue('exports', 5, 60, 3600);
SELECT livewell.declare_export_kind('resume', 'application/pdf', 'pdf', '{}', 1000);
INSERT INTO livewell.alert_channel (name, kind, source, level, repeats, since) VALUES ('traps', 'webhook', 'env:X', 'P2', false, now()) ON CONFLICT DO NOTHING;
INSERT INTO livewell.schedule (name, seen_at, created_at, every, timeout, kind, missed) VALUES ('livewell.alerts', now(), now(), '1 minute', '1 minute', 'interval', 'skip') ON CONFLICT DO NOTHING;
INSERT INTO livewell.contact (tenant, id, created_at) SELECT 'acme', id, now() FROM unnest('{c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd11, c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd12}'::uuid[]) AS id ON CONFLICT DO NOTHING;
INSERT INTO livewell.contact_identity (tenant, type, value, original, added_at, contact_id) VALUES ('acme', 'email', 'carl@example.com', 'carl@example.com', now(), 'c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd11') ON CONFLICT DO NOTHING;
INSERT INTO livewell.contact_conflict (id, tenant, one_id, other_id, state, why, opened_at) OVERRIDING SYSTEM VALUE
VALUES (1001, 'acme', 'c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd11', 'c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd12', 'waiting', 'perhaps', now()) ON CONFLICT DO NOTHING;
INSERT INTO livewell.contact_alias VALUES ('c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd13', 'c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd11', now(), 'acme') ON CONFLICT DO NOTHING;
INSERT INTO livewell.contact_merge (id, tenant, winner_id, loser_id, loser_born_at, merged_at, why, done_by, moved, fields, gained, aliases) OVERRIDING SYSTEM VALUE
VALUES (1001, 'acme', 'c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd11', 'c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd13', now(), now(), 'test', 'test', '[["email", "carl@example.com"]]', '{"a": 1}', '{a}', '{}') ON CONFLICT DO NOTHING;
SELECT setval('livewell.timeline_seq', 77);
SELECT setval('livewell.event_timeline_seq', 77);
INSERT INTO livewell.subscription VALUES (livewell.session_hash('c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd10'), 'quote', 'PARKED', 'ann') ON CONFLICT DO NOTHING;
"""


class Attacker(QueueSession):
    """An ordinary login that may do what a worker may, and has put a trap under every name it can think of."""

    def __init__(self, dsn: str, role: str) -> None:
        super().__init__(dsn)
        self.caught: list[str] = []
        self.connection.add_notice_handler(lambda notice: self._note(notice.message_primary or ""))
        names = self.column(
            "SELECT DISTINCT relname::text FROM pg_class WHERE relnamespace = 'livewell'::regnamespace AND "
            "relkind IN ('r', 'p', 'S')"
        )
        catalog = ["pg_class", "pg_inherits", "pg_roles", "pg_namespace"]
        # Base types under their short names; the names that are grammar (integer, bigint, boolean)
        # never go through a search path.
        types = self.column(
            "SELECT typname::text FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype = "
            "'b' AND typname !~ '^_' "
            "AND typname = ANY (ARRAY['text', 'date', 'timestamptz', 'interval', 'regclass', 'name', 'int4', "
            "'int8', 'bool', 'float8', 'jsonb', 'oid', 'uuid'])"
        )
        functions = self.rows(
            "SELECT DISTINCT p.proname::text, pg_get_function_identity_arguments(p.oid) FROM pg_proc p "
            "WHERE p.pronamespace = 'livewell'::regnamespace AND p.proname IN ('now', 'redact', 'warn', "
            "'audit_act', 'ask_run', 'ensure_history_days', 'drop_history_day', 'ensure_event_days', 'drop_event_day', "
            "'raise_event_numbers', 'unpark', 'judge_keys', 'verdict', 'is_stale', "
            "'next_due', 'stale_at', 'heartbeat_session', 'key_fits', 'spend_cold_keys', 'spend_cold_read', "
            "'demand_refresh', 'refresh_wanted', 'refresh_jobs', 'refresh_queue', 'enqueue_jobs', 'insert_jobs', "
            "'merge_jobs', 'read_values', 'registered_type', 'enter_tenant', 'every_tenant', "
            "'identity_rule', 'normal_identity', 'settle_identities', 'known_contact', 'lock_held', 'lock_contacts', "
            "'merge_contacts', 'tell_contact', 'emit_event', 'event_id', 'refuse_event', 'enter_export_user', "
            "'lock_export_usage', 'check_export_items', 'match_exports', 'insert_exports', 'insert_export_batch', "
            "'end_export', 'end_export_batches', 'export_document', 'export_verdict', 'cancel_job', 'reserve_job_ids')"
        )
        self.rows(f"SET SESSION AUTHORIZATION {role}")
        self.rows("CREATE TABLE pg_temp.trap_made (x int)")
        for name in types:
            self.rows(
                f"CREATE FUNCTION pg_temp.trap(value pg_catalog.{name}) RETURNS boolean LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE NOTICE 'trap: type, as %', current_user; RETURN true; END $$"
            )
            self.rows(f'CREATE DOMAIN pg_temp."{name}" AS pg_catalog.{name} CHECK (pg_temp.trap(VALUE))')
        for name in {*names, *catalog} - set(types):
            self.rows(f'CREATE TABLE pg_temp."{name}" (x int)')
        for name, arguments in functions:
            self.rows(
                f"CREATE FUNCTION pg_temp.{name}({arguments}) RETURNS pg_catalog.text LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE NOTICE 'trap: function, as %', current_user; RETURN NULL; END $$"
            )
        self.rows(
            "CREATE FUNCTION pg_temp.to_char(d pg_catalog.date, f pg_catalog.text) RETURNS pg_catalog.text "
            "LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE NOTICE 'trap: function, as %', current_user; RETURN 'x'; END $$"
        )
        self.caught.clear()

    def _note(self, text: str) -> None:
        if text.startswith("trap"):
            self.caught.append(text)


@contextmanager
def attacker(dsn: str) -> Iterator[Attacker]:
    role = (
        f"livewell_test_attacker_{secrets.token_hex(4)}"  # roles belong to the whole server, and tests run side by side
    )
    with QueueSession(dsn) as admin:
        admin.rows(VIEWED)
        admin.rows(f"CREATE ROLE {role} LOGIN IN ROLE livewell_worker, livewell_api, livewell_operate")
        try:
            with Attacker(dsn, role) as session:
                pid = session.connection.info.backend_pid
                yield session
            # Its temp objects go when its backend ends; dropping them from here at the same time
            # can deadlock with that.
            eventually(lambda: admin.rows("SELECT 1 FROM pg_stat_activity WHERE pid = %s", pid) == [])
        finally:
            admin.rows(f"DROP OWNED BY {role}")
            admin.rows(f"DROP ROLE {role}")


def test_every_definer_function_is_attacked(queue: QueueSession) -> None:
    """The list above is the list in the catalog."""
    found = queue.column(
        "SELECT proname::text FROM pg_proc WHERE pronamespace = 'livewell'::regnamespace AND prosecdef"
    )

    assert sorted(found) == sorted(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_no_trap_is_stepped_on(livewell_dsn: str, name: str) -> None:
    """Temp tables, functions and types of every name it might mean: none is reached."""
    with attacker(livewell_dsn) as session:
        session.rows(CALLS[name])

        assert session.caught == []


def test_the_work_is_done_on_the_real_tables(livewell_dsn: str) -> None:
    """The traps do not divert it either."""
    with QueueSession(livewell_dsn) as queue, attacker(livewell_dsn) as session:
        for call in CALLS.values():
            session.rows(call)

        assert queue.column("SELECT place FROM livewell.warning") == ["place"]
        days = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'livewell.job_history'::regclass"
        assert queue.value(days) == 41


@pytest.mark.parametrize("bare", ["text", "date", "timestamptz"])
def test_a_type_without_its_schema_is_a_way_in(livewell_dsn: str, bare: str) -> None:
    """Broken on purpose, as it was: the caller's CHECK runs as the owner."""
    with variant(livewell_dsn, "ensure_history_days", (f"pg_catalog.{bare}", bare)), attacker(livewell_dsn) as session:
        session.rows(CALLS["ensure_history_days"])

        assert set(session.caught) == {"trap: type, as livewell_owner"}


def test_a_search_path_with_tables_in_it_is_a_way_in(livewell_dsn: str) -> None:
    """Broken on purpose: a path that is set but does not end with pg_temp is searched after it."""
    change = (
        ("SET search_path = ''", "SET search_path = livewell"),
        ("(LIKE livewell.job_history INCLUDING DEFAULTS)", "(LIKE job_history INCLUDING DEFAULTS)"),
    )
    # It reaches for the caller's table; here Postgres stops it only because that one is not shared
    # with the owner.
    with (
        variant(livewell_dsn, "ensure_history_days", *change),
        attacker(livewell_dsn) as session,
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for table job_history"),
    ):
        session.rows(CALLS["ensure_history_days"])
