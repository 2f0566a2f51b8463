"""What is said of exports to whoever is on call: state, rules, reports of workers. Nothing of a document (E15)."""

from __future__ import annotations

import json
from typing import Any

from tests.support.exports_sql import ESTIMATE, ExportSession


def state(exports: ExportSession) -> dict[str, Any]:
    found: dict[str, Any] = exports.value("SELECT livewell.state_exports()")
    return found


def rule(exports: ExportSession, name: str) -> list[tuple[str, str]]:
    return [(subject, text) for subject, text in exports.rows(f"SELECT * FROM livewell.rule_{name}(livewell.now())")]


def report(exports: ExportSession, name: str = "host:1", **told: Any) -> None:
    usual = {"rss_bytes": 10**8, "children_bytes": 10**8, "bytes_max": 10**9, "renders": 5, "children": 2}
    exports.rows(
        "SELECT livewell.report_renderer(%s, %s::jsonb)",
        name,
        json.dumps({**usual, "spare_deaths": 0, "killed": {}, "store_reason": None, **told}),
    )


def test_nothing_to_make_is_told_as_nothing(exports: ExportSession) -> None:
    """No division by nothing, no rule that fires."""
    found = state(exports)
    assert (found["waiting"], found["running"], found["oldest_seconds"]) == (0, 0, None)
    assert found["hour"]["finished"] == 0
    assert [rule(exports, f"exports_{name}") for name in ("failing", "memory", "waiting")] == [[], [], []]


def test_what_waits_fails_and_is_stored_is_counted(exports: ExportSession) -> None:
    """E10, E14: with the largest users, by their numbers alone."""
    exports.make(exports.one("ann", "secret-name"), 700)
    broken = exports.one("bob", "b")
    claim = exports.take()
    exports.begin(claim, broken)
    exports.fail(claim, broken, "bad_image", again=False)
    exports.finish(claim)
    exports.one("ann", "c")
    exports.advance(30)
    found = state(exports)

    assert (found["waiting"], found["retrying"], found["running"]) == (1, 0, 0)
    assert 30 <= found["oldest_seconds"] < 60
    assert (found["hour"]["finished"], found["hour"]["failed"]) == (1, 1)
    assert found["reasons"] == [{"reason": "bad_image", "n": 1}]
    assert (found["usage"]["stored_bytes"], found["usage"]["reserved_bytes"]) == (700, ESTIMATE)
    assert [(one["user"], one["stored_bytes"]) for one in found["largest"]] == [("ann", 700)]
    assert "secret-name" not in json.dumps(found)


def test_files_that_wait_to_be_removed_have_an_age(exports: ExportSession) -> None:
    """Deleted, or expired and not taken up."""
    one, two = exports.one("ann", "a"), exports.one("ann", "b")
    for _ in (one, two):
        claim = exports.take()
        exports.make(
            exports.value("SELECT payload ->> 'export' FROM livewell.job WHERE id = %s", claim.id), claim=claim
        )
    exports.delete(one)
    exports.advance(700)

    found = state(exports)["cleanup"]
    assert found["removing"] == 1
    assert 700 <= found["oldest_seconds"] < 760
    exports.advance(8 * 86400)
    assert state(exports)["cleanup"]["oldest_seconds"] > 86400
    exports.clean()
    assert state(exports)["cleanup"] == {"removing": 0, "oldest_seconds": None}


def test_five_failures_that_are_ours_wake_somebody(exports: ExportSession) -> None:
    """At 20 %; what is wrong with documents counts as an end, and not as a failure."""
    ids = [exports.one(f"u{n}", "a") for n in range(10)]
    end = "UPDATE livewell.export SET state = 'failed', reason = %s, reserved_bytes = 0, finished_at = livewell.now() WHERE id = %s"
    for export in ids[:4]:
        exports.rows(end, "store_unreachable", export)
    for export in ids[5:]:
        exports.rows(end, "unsupported_character", export)
    assert rule(exports, "exports_failing") == []

    exports.rows(end, "died", ids[4])

    [(subject, text)] = rule(exports, "exports_failing")
    assert subject == "exports"
    assert text == "5 of 10 exports failed in 15 minutes, most of them with the reason store_unreachable"
    exports.advance(901)
    assert rule(exports, "exports_failing") == []


def test_an_export_that_waits_for_five_minutes_wakes_somebody(exports: ExportSession) -> None:
    """Not one that was tried and waits for its next attempt."""
    export = exports.one()
    exports.advance(299)
    assert rule(exports, "exports_waiting") == []
    exports.advance(2)
    assert rule(exports, "exports_waiting")[0][0] == "exports"

    claim = exports.take()
    exports.begin(claim, export)
    exports.fail(claim, export, again=True)

    assert rule(exports, "exports_waiting") == []


def test_a_worker_at_four_fifths_of_its_memory_is_named(exports: ExportSession) -> None:
    """E13: with its children; one that is silent is not counted."""
    report(exports, rss_bytes=3 * 10**8, children_bytes=4 * 10**8)
    assert rule(exports, "exports_memory") == []
    report(exports, rss_bytes=3 * 10**8, children_bytes=5 * 10**8)
    [(subject, text)] = rule(exports, "exports_memory")
    assert (subject, "worker host:1 uses 300 MB and its 2 children 500 MB" in text) == ("host:1", True)

    exports.advance(121)

    assert rule(exports, "exports_memory") == []
    assert state(exports)["renderers"] == []


def test_since_when_the_store_is_away_stays_until_it_answers(exports: ExportSession) -> None:
    """For the doctor."""
    report(exports, store_reason="unreachable: timeout")
    exports.advance(60)
    report(exports, store_reason="unreachable: timeout")
    [seen] = state(exports)["renderers"]
    assert (seen["store_reason"], seen["store_seconds"] >= 60) == ("unreachable: timeout", True)
    report(exports)
    [seen] = state(exports)["renderers"]
    assert (seen["store_reason"], seen["store_seconds"]) == (None, None)
    exports.rows("SELECT livewell.report_renderer('host:1', NULL)")
    assert state(exports)["renderers"] == []
