"""One function makes refresh jobs and one names their queue, whoever asks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import livewell
from livewell.refresh.nudges import DUE
from livewell.refresh.queues import is_refresh_queue, queue_name
from tests.support.refresh_sql import RefreshSession

SHAPE = "queue, kind, unique_key, group_key, call_key, units, max_attempts, payload, priority"
PACKAGES = Path(livewell.__file__).parent
SPELLED = re.compile(r"(?m)^(?!--).*(?:'refresh\.(?:due)?'|concat_ws\('\.', 'refresh')")


def one_job(refresh: RefreshSession) -> tuple[object, ...]:
    """What there is, and then nothing any more."""
    [job] = refresh.rows(f"DELETE FROM livewell.job RETURNING {SHAPE}")
    return job


@pytest.mark.parametrize("known", [{}, {"etag": "x"}, {"failures": 1, "missing": True}])
def test_a_due_check_a_walk_and_a_reader_make_the_same_job(refresh: RefreshSession, known: dict[str, Any]) -> None:
    """Queue, keys, payload, attempts, and the size that was learnt instead of the one in the file."""
    refresh.rows("UPDATE livewell.data_type SET applied_at = applied_at - interval '1 day'")
    refresh.rows("INSERT INTO livewell.limiter_estimate VALUES ('api', 'livewell.refresh:quote', 4321)")
    checked = refresh.now() if known else None
    refresh.keep("AAPL", due_at=refresh.now(), checked_at=checked, fetched_at=checked, **known)
    refresh.rows("UPDATE livewell.ledger SET checked_at = checked_at - interval '2 hours'")

    refresh.subscribe(refresh.open("ann"), "AAPL", user="ann")
    assert refresh.dispatch()["inserted"] == 1
    by_check = one_job(refresh)
    refresh.rows("UPDATE livewell.ledger SET demanded_at = NULL, wanted_at = NULL")
    assert refresh.value("SELECT demand FROM livewell.read_through('quote', 'AAPL')") == "queued"
    by_reader = one_job(refresh)
    refresh.rows("SELECT livewell.enqueue_refreshes('{quote}', '{AAPL}', '{1}', '{1}')")

    assert by_check == by_reader == one_job(refresh)
    assert by_check[5] == 4321


def test_readers_of_a_batch_type_share_calls_that_are_never_too_large(refresh: RefreshSession) -> None:
    """Jobs that are made one by one, each with a block of ids.

    At most keys_max of them have one call key.
    """
    refresh.rows("UPDATE livewell.data_type SET keys_max = 3")
    for n in range(9):
        refresh.rows("SELECT livewell.read_through('quote', %s)", f"K{n}")
    sizes = [n for (n,) in refresh.rows("SELECT count(*) FROM livewell.job GROUP BY call_key")]

    assert sum(sizes) == 9
    assert max(sizes) == 3


@pytest.mark.parametrize("pool", [None, "slow"])
def test_sql_and_python_name_one_queue(refresh: RefreshSession, pool: str | None) -> None:
    """And Python knows it for a queue of refreshes."""
    name = refresh.value("SELECT livewell.refresh_queue('api', %s)", pool)

    assert name == queue_name("api", pool)
    assert is_refresh_queue(name)


def test_an_upstream_has_its_own_queue_and_those_of_its_pools(refresh: RefreshSession) -> None:
    """Not those of an upstream whose name begins alike."""
    refresh.upstream("api_two", pools=["slow"])
    refresh.upstream(pools=["slow", "fast"])

    queues = refresh.value("SELECT livewell.list_refresh_queues('api')")

    assert sorted(queues) == ["refresh.api", "refresh.api.fast", "refresh.api.slow"]


def test_no_other_function_spells_the_name() -> None:
    """refresh_queue() or due_check_name() is called instead, in every package."""
    spelled = {path.stem for path in PACKAGES.rglob("sql/functions/**/*.sql") if SPELLED.search(path.read_text())}

    assert spelled == {"refresh_queue", "due_check_name"}


def test_sql_and_python_name_one_due_check(refresh: RefreshSession) -> None:
    """The singleton, the nudges and the statistics of the due check have one name."""
    assert refresh.value("SELECT livewell.due_check_name()") == DUE
