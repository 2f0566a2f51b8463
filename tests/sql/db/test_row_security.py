"""Row security holds what runs as the owner to one user, even where a function's own words forget to."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg
import pytest

TABLES = ("viewer", "viewer_session", "subscription", "api_key")
FORGETFUL = """
CREATE FUNCTION livewell.forgetful(p_user text) RETURNS bigint[] LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
BEGIN
    PERFORM set_config('livewell.user_id', coalesce(p_user, ''), true);
    RETURN ARRAY[(SELECT count(*) FROM livewell.viewer), (SELECT count(*) FROM livewell.viewer_session), (SELECT count(*) FROM livewell.subscription), (SELECT count(*) FROM livewell.api_key)];
END $$;
ALTER FUNCTION livewell.forgetful OWNER TO livewell_owner;
"""
ROWS = """
INSERT INTO livewell.viewer (user_id) VALUES ('ann'), ('key:BBBBBBBB');
INSERT INTO livewell.viewer_session (id, seen_at, created_at, user_id) VALUES (gen_random_uuid(), now(), now(), 'ann'), (gen_random_uuid(), now(), now(), 'key:BBBBBBBB');
INSERT INTO livewell.subscription SELECT id, 'quote', 'A', user_id FROM livewell.viewer_session;
INSERT INTO livewell.api_key (id, user_id, kind, name, scopes, secret_hash, created_at) VALUES
    ('AAAAAAAA', 'key:AAAAAAAA', 'key', 'x', '{view}', decode(repeat('00', 32), 'hex'), now()), ('BBBBBBBB', 'key:BBBBBBBB', 'key', 'x', '{view}', decode(repeat('00', 32), 'hex'), now());
"""


@pytest.fixture
def db(livewell_dsn: str) -> Any:
    """Rows of two users, and a function of the owner without a WHERE."""
    with psycopg.connect(livewell_dsn, autocommit=True) as connection:
        connection.execute(ROWS)
        connection.execute(FORGETFUL)
        yield connection


def value(db: Any, query: str, *params: Any) -> Any:
    return db.execute(query, params).fetchone()[0]


def test_a_function_of_the_owner_that_forgets_its_user_sees_nothing(db: Any) -> None:
    """Nobody said, and said to be nobody.

    Proven once with NO FORCE ROW LEVEL SECURITY: everything was seen.
    """
    assert value(db, "SELECT livewell.forgetful(NULL)") == [0, 0, 0, 0]


def test_a_function_of_the_owner_without_a_where_sees_one_user(db: Any) -> None:
    """The rows of the user it acts for."""
    assert value(db, "SELECT livewell.forgetful('ann')") == [1, 1, 1, 0]
    assert value(db, "SELECT livewell.forgetful('key:BBBBBBBB')") == [1, 1, 1, 1]


def test_who_a_call_was_for_is_forgotten_with_its_transaction(db: Any) -> None:
    """The next call on the same connection is somebody else's."""
    db.execute("SELECT livewell.open_session(%s, 'ann')", (uuid.uuid4(),))

    assert value(db, "SELECT coalesce(current_setting('livewell.user_id', true), '')") == ""


@pytest.mark.parametrize("table", TABLES)
def test_workers_see_all_viewers_and_the_api_sees_no_table(db: Any, table: str) -> None:
    """A worker that saw one user's subscriptions alone would let everybody else's go stale."""
    counts = {}
    for role in ("livewell_worker", "livewell_api"):
        db.execute(f"SET ROLE {role}")
        try:
            counts[role] = value(db, f"SELECT count(*) FROM livewell.{table}")
        except psycopg.errors.InsufficientPrivilege:
            counts[role] = None
        finally:
            db.execute("RESET ROLE")

    assert counts == {"livewell_worker": None if table == "api_key" else 2, "livewell_api": None}


def test_whoever_migrates_with_a_login_of_their_own_sees_all(livewell_dsn: str, db: Any) -> None:
    """A member of the owner that also works must not park what others watch."""
    name = f"livewell_test_dba_{uuid.uuid4().hex[:8]}"
    db.execute(f"CREATE ROLE {name} LOGIN IN ROLE livewell_owner")
    try:
        db.execute(f"SET SESSION AUTHORIZATION {name}")
        assert value(db, "SELECT count(*) FROM livewell.subscription") == 2
        db.execute("RESET SESSION AUTHORIZATION")
    finally:
        db.execute("RESET SESSION AUTHORIZATION")
        db.execute(f"DROP ROLE {name}")
