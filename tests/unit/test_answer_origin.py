"""An answer on a shared connection has to prove its question (ADR 0011)."""

from __future__ import annotations

import pytest

from livewell.model import Blame
from livewell.refresh.fetch.answer_origin import Connection, check_proof, share_of
from livewell.refresh.reasons import Reason
from livewell.refresh.result import Failure, Forgotten, Missing, Result, Same, Singly, Unproven, Value
from tests.support.refresh_types import QUOTE, type_of, upstream_of

VALUE = Value([{"price": "1"}], None, None, b"h", ())
RATE_WALL = Failure(Reason.RATE_WALL, "status 429", Blame.UPSTREAM)
OTHER_WALL = Failure(Reason.AUTH, "status 401", Blame.OUTAGE)


class Line:
    """A connection that knows whether it was retired."""

    def __init__(self, *, alone: bool) -> None:
        self.retired = 0
        self.connection = Connection(alone, "status 200", self._retire)

    def _retire(self) -> None:
        self.retired += 1


@pytest.mark.parametrize("result", [Same(b"h"), Missing(), OTHER_WALL, Singly("empty")], ids=repr)
def test_what_proves_nothing_is_unproven_on_a_shared_connection(result: Result) -> None:
    """For every key; and nothing more is asked on the connection."""
    line = Line(alone=False)

    found = check_proof({"A": result, "B": result}, line.connection)

    unproven = Unproven("status 200 on a connection that had carried other questions")
    assert found == {"A": unproven, "B": unproven}
    assert line.retired == 1


@pytest.mark.parametrize("result", [VALUE, Forgotten("changed"), RATE_WALL], ids=lambda one: type(one).__name__)
def test_a_row_that_repeats_the_key_proves_the_whole_answer(result: Result) -> None:
    """A rate wall is believed in any case."""
    line = Line(alone=False)

    assert check_proof({"A": result, "B": Missing()}, line.connection) == {"A": result, "B": Missing()}
    assert line.retired == 0


@pytest.mark.parametrize("connection", [None, Connection(alone=True, seen="status 404")], ids=["none", "alone"])
def test_an_answer_alone_on_its_connection_is_believed(connection: Connection | None) -> None:
    """And where no answer came there is nothing to prove."""
    assert check_proof({"A": Missing()}, connection) == {"A": Missing()}


def test_calls_of_one_endpoint_share_connections() -> None:
    """The key makes no difference; the endpoint for several keys is another one."""
    quote, upstream = type_of(QUOTE), upstream_of()
    first, second, several = (share_of(quote, upstream, keys) for keys in (["A"], ["B"], ["A", "B"]))

    assert first is not None
    assert second is not None
    assert several is not None
    assert first.family == second.family != several.family
    assert (first.subjects, second.subjects) == (frozenset("A"), frozenset("B"))


def test_a_type_whose_answers_prove_nothing_shares_no_connection() -> None:
    """Its answer does not repeat the key, or a transform may have written it."""
    silent = type_of(QUOTE, answer={"key": None, "no_echo": True}, fetch={"batch": None})
    turned = type_of(QUOTE, answer={"transform": "turn"})

    assert share_of(silent, upstream_of(), ["A"]) is None
    assert share_of(turned, upstream_of(), ["A"]) is None
