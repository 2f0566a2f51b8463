"""The audit in SQL: what a line holds, filters, bounds, and where a look ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

Connection = psycopg.Connection[Any]
LIST = "SELECT * FROM livewell.list_acts(%s, %s, %s, %s, %s, %s, %s)"
FILL = """
INSERT INTO livewell.audit (at, actor, login, action, subject, arguments, answer)
SELECT now() - (30001 - i) * interval '1 minute', CASE WHEN i = 3 THEN 'ann' ELSE 'bob' END, 'x',
    CASE WHEN i % 2 = 0 THEN 'queues.pause' ELSE 'queuesx.pause' END, 'q' || i % 10, '{}', 'done'
FROM generate_series(1, 30000) AS i
"""


@pytest.fixture
def database(livewell_dsn: str) -> Iterator[Connection]:
    with psycopg.connect(livewell_dsn, autocommit=True) as connection:
        yield connection


def write(database: Connection, **given: Any) -> tuple[Any, ...]:
    """Record an act, and read its line back."""
    row: dict[str, Any] = {
        "actor": "ann",
        "origin": "page 192.0.2.7",
        "action": "queues.pause",
        "subject": "mail",
        "arguments": "{}",
    }
    row |= {"answer": "done", "before": None, "after": None, "n": None, **given}
    database.execute(
        """SELECT livewell.audit_act(%(actor)s, %(origin)s, %(action)s, %(subject)s, %(arguments)s::jsonb, %(answer)s,
        %(before)s::jsonb, %(after)s::jsonb, %(n)s)""",
        row,
    )
    found: tuple[Any, ...] | None = database.execute(
        "SELECT actor, origin, action, subject, arguments, before, after, n FROM livewell.audit ORDER BY id DESC LIMIT 1"
    ).fetchone()
    assert found is not None
    return tuple(found)


def test_a_line_says_who_from_where_what_before_and_after(database: Connection) -> None:
    """And how many."""
    line = write(database, before='{"paused": false}', after='{"paused": true}', n=3)
    assert line == ("ann", "page 192.0.2.7", "queues.pause", "mail", {}, {"paused": False}, {"paused": True}, 3)


def test_an_origin_without_an_address_gets_that_of_the_connection(database: Connection) -> None:
    """A setting of the transaction says it where a function records by itself."""
    address = database.execute("SELECT host(inet_client_addr())").fetchone()
    assert address is not None
    assert write(database, origin="cli")[1] == " ".join(filter(None, ("cli", address[0])))
    with database.transaction():
        database.execute("SET LOCAL livewell.origin = 'http 192.0.2.9'")
        assert write(database, origin=None)[1] == "http 192.0.2.9"
    assert write(database, origin=None)[1] is None


@pytest.mark.parametrize("part", ["arguments", "before", "after"])
@pytest.mark.parametrize("text", ['{"password": "hunter2"}', '{"x": "' + "long " * 500 + '"}'])
def test_what_looks_like_a_secret_or_is_too_long_is_hidden(database: Connection, part: str, text: str) -> None:
    """In each of the documents; its size and a hash stay."""
    found = dict(zip(("arguments", "before", "after"), write(database, **{part: text})[4:7], strict=True))[part]
    assert {name: found[name] for name in ("hidden", "bytes")} == {"hidden": True, "bytes": len(text)}
    assert len(found["sha256"]) == 64
    assert "hunter2" not in str(found)


def test_a_hash_says_whether_two_hidden_documents_differ(database: Connection) -> None:
    """Also behind the first 4,000 characters; but no password can be guessed from one.

    Seen failing: all were {"hidden": true}.
    """

    def hash_of(document: dict[str, str]) -> str:
        return str(write(database, after=json.dumps(document))[6]["sha256"])

    long = "long " * 2000
    assert hash_of({"x": f"{long}a"}) != hash_of({"x": f"{long}b"})
    assert hash_of({"x": f"{long}a"}) == hash_of({"x": f"{long}a"})
    assert hash_of({"password": "hunter2"}) == hash_of({"password": "hunter3"})
    assert hash_of({"password": "hunter2", "n": "1"}) != hash_of({"password": "hunter2", "n": "2"})


NAMED = "SELECT actor_name, subject_name FROM livewell.list_acts(NULL, 1, NULL, NULL, NULL, NULL, NULL)"


def test_keys_are_named(database: Connection) -> None:
    """Those who act and those that are acted on, for whom who may read keys; others have the line of their making.

    Before, a line said key:<id>, and no name.
    """
    database.execute(
        "INSERT INTO livewell.api_key (id, user_id, kind, name, scopes, secret_hash, created_at) "
        "VALUES ('robot123', 'key:robot123', 'key', 'the robot', '{operate}', sha256('x'), now())"
    )
    write(database, actor="key:robot123")
    assert database.execute(NAMED).fetchone() == ("the robot", None)
    write(database, actor="cli:ann", action="keys.revoke", subject="robot123")
    assert database.execute(NAMED).fetchone() == (None, "the robot")
    write(database, actor="cli:ann", action="queues.pause", subject="robot123")
    assert database.execute(NAMED).fetchone() == (None, None)
    write(database, actor="key:login123", action="logins.begin", subject="login123", arguments='{"name": "of ann"}')
    write(database, actor="key:login123")
    for role, expected in (
        ("livewell_operate", "of ann"),
        ("livewell_readonly", "of ann"),
        ("livewell_worker", "of ann"),
    ):
        database.execute(f"SET ROLE {role}".encode())
        assert database.execute(NAMED).fetchone() == (expected, None)
        database.execute("RESET ROLE")
    database.execute("SET ROLE livewell_operate")
    assert database.execute(NAMED.replace("NULL, 1, NULL", "NULL, 1, 'key:robot123'")).fetchone() == ("the robot", None)


def test_texts_and_numbers_are_bounded(database: Connection) -> None:
    """Nothing that a caller says makes a line fail."""
    line = write(database, actor="é" * 5000, origin="page " + "x" * 500, subject="é" * 5000, action="a" * 500, n=-5)
    assert [len(text) for text in line[:4]] == [200, 50, 100, 200]
    assert line[-1] == 0


def test_filters_and_pages(database: Connection) -> None:
    """By actor, action or kind of action, subject and time; pages are disjoint and end."""
    database.execute(FILL)

    def ids(*params: Any) -> list[int]:
        return [row[0] for row in database.execute(LIST, params)]

    assert len(ids(None, 50, None, None, None, None, None)) == 50
    assert ids(None, 2, None, "queues", None, None, None) == ids(None, 2, None, "queues.pause", None, None, None)
    assert ids(None, 2, None, "queue", None, None, None) == []
    assert len(ids(None, 50, "ann", None, None, None, None)) == 1
    assert all(
        i % 10 == ids(None, 1, None, None, "q7", None, None)[0] % 10 for i in ids(None, 9, None, None, "q7", None, None)
    )
    now = database.execute("SELECT now()").fetchone()
    assert now is not None
    found = database.execute(
        "SELECT count(*), min(at) >= now() - interval '90 minutes', max(at) < now() - interval '30 minutes' "
        "FROM livewell.list_acts(NULL, 1000, NULL, NULL, NULL, now() - interval '90 minutes', now() - interval '30 minutes')"
    ).fetchone()
    assert found == (60, True, True)
    first = ids(None, 500, None, None, "q7", None, None)
    assert len(set(first) & set(ids(first[-1], 500, None, None, "q7", None, None))) == 0


def test_a_look_is_bounded_and_says_where_to_go_on(database: Connection) -> None:
    """No index serves two filters at once: 20,000 rows are looked at, and the next page goes on there."""
    database.execute(FILL)
    rows = database.execute(LIST, (None, 50, "bob", "queues.pause", None, None, None)).fetchall()
    assert len(rows) == 50
    first = database.execute("SELECT min(id) FROM livewell.audit WHERE actor = 'ann'").fetchone()
    assert first is not None
    [(place, at, *_)] = database.execute(LIST, (None, 50, "bob", "types", None, None, None)).fetchall()
    assert at is None
    assert database.execute(LIST, (place, 50, "bob", "types", None, None, None)).fetchall() == []


def test_old_workers_write_lines_as_before(database: Connection) -> None:
    """The signature of 0.7.0 stays for one minor version."""
    database.execute("SELECT livewell.record_act('cli:ann', 'x', 'y', '{}', 'done')")
    row = database.execute("SELECT actor, action, before FROM livewell.audit").fetchone()
    assert row == ("cli:ann", "x", None)
    assert len(database.execute("SELECT * FROM livewell.list_audit(NULL, 5)").fetchall()) == 1
