"""What follows from a reason is the same in SQL and in Python."""

from __future__ import annotations

from livewell.refresh.reasons import MEANING
from tests.support.refresh_sql import RefreshSession


def test_sql_and_python_have_one_list(refresh: RefreshSession) -> None:
    """Job, ledger row and limiter: refresh_reasons() says what refresh/reasons.py says."""
    expected = {
        reason.value: {"fate": meaning.fate.value, "ledger": meaning.ledger.value}
        | ({"fared": meaning.fared.value} if meaning.fared else {})
        for reason, meaning in MEANING.items()
    }

    assert refresh.value("SELECT livewell.refresh_reasons()") == expected
