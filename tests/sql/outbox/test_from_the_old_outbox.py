"""The smoke tests of the outbox that this one replaces, as they were written, on the page's SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.outbox_sql import OutboxSession

PAGE = Path(__file__).parents[3] / "docs/howto/from_the_old_outbox.md"

INSERT = """
INSERT INTO outbox (topic, payload, created_at)
VALUES 
  ('test', '{"seq": 3}'::jsonb, now() - interval '1 hour'),
  ('test', '{"seq": 1}'::jsonb, now() - interval '3 hours'),
  ('test', '{"seq": 2}'::jsonb, now() - interval '2 hours');
"""  # noqa: W291 - as it was written
CLAIM = "SELECT app.outbox_claim(10, gen_random_uuid(), null);"
FIRST = "SELECT id FROM app.outbox_claim(5, '11111111-1111-1111-1111-111111111111', null);"
SECOND = "SELECT id FROM app.outbox_claim(5, '22222222-2222-2222-2222-222222222222', null);"
HOLD = "SELECT id FROM app.outbox_claim(5, 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa', null);"
WRONG = """
SELECT app.outbox_mark_delivered('bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb', 
  ARRAY(SELECT id FROM outbox WHERE processing_token = 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa')
);
"""  # noqa: W291 - as it was written
RIGHT = """
SELECT app.outbox_mark_delivered('aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa', 
  ARRAY(SELECT id FROM outbox WHERE processing_token = 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa')
);
"""  # noqa: W291 - as it was written
Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def old(outbox: OutboxSession) -> Iterator[OutboxSession]:
    """A database to which the page's SQL was given, and nothing in the outbox."""
    [statements] = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    outbox.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
    outbox.rows("DELETE FROM livewell.event_sink")
    outbox.connection.execute(statements.encode())
    outbox.rows("SET search_path = app, public")
    yield outbox
    outbox.rows("DROP SCHEMA app CASCADE")


def test_claim_ordering(old: OutboxSession) -> None:
    """Seq 1, 2, 3: oldest to newest."""
    old.rows(INSERT)
    answers = old.column(CLAIM)

    assert [re.findall(r"seq\W+(\d)", str(answer)) for answer in answers] == [["1"], ["2"], ["3"]]


def test_concurrent_claims_do_not_overlap(old: OutboxSession, other_outbox: OutboxSession) -> None:
    for _ in range(4):
        old.rows(INSERT)
    other_outbox.rows("SET search_path = app, public")
    first, second = old.column(FIRST), other_outbox.column(SECOND)

    assert (len(first), len(second), set(first) & set(second)) == (5, 5, set())


def test_finalization_requires_a_valid_token(old: OutboxSession) -> None:
    old.rows(INSERT)
    held = old.column(HOLD)

    assert old.value(WRONG) == 0
    assert old.value(RIGHT) == len(held) == 3
    assert old.value("SELECT count(*) FROM outbox WHERE delivered_at IS NOT NULL AND processing_token IS NULL") == 3


def test_one_tenant_and_a_row_without_a_time(old: OutboxSession) -> None:
    """What the old programs also do."""
    tenant = "00000000-0000-0000-0000-00000000000a"
    old.rows(INSERT)
    old.rows("INSERT INTO outbox (topic, payload, tenant_id) VALUES ('test', '{}', %s)", tenant)

    assert old.column("SELECT tenant_id FROM app.outbox_claim(9, gen_random_uuid(), %s::uuid)", tenant) == [tenant]
    assert old.value("SELECT count(*) FROM outbox WHERE created_at > now() - interval '1 minute'") == 1
