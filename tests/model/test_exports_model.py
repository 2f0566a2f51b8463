"""Random lives of exports, on a real database, compared with the model after every step (E1, E5, E7, E10, E11).

The quick form is the same 60 examples in every run; LIVEWELL_MODEL_EXAMPLES=5000 tries that many
new ones.
"""

from __future__ import annotations

import os
from typing import Any, cast

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.model.exports_model import ESTIMATE, ROOM, ExportsModel, ModelExport
from tests.support.exports_sql import ExportSession, item
from tests.support.queue_sql import Claim

EXAMPLES = int(os.environ.get("LIVEWELL_MODEL_EXAMPLES", "0"))

users = st.sampled_from(["ann", "ann", "bob"])
documents = st.sampled_from(["a", "b", "c"])
picks = st.integers(0, 11)
EVERYTHING = """
SELECT e.id::text, livewell.export_verdict(e.state, e.expires_at, livewell.now()), e.reason, e.reserved_bytes, e.stored_bytes, e.progress,
    (SELECT array_agg(f.state ORDER BY f.fence) FROM livewell.export_file f WHERE f.export_id = e.id)
FROM livewell.export e ORDER BY e.id
"""


class ExportsMachine(RuleBasedStateMachine):
    """Two users, three documents, one worker at a time; everything that can happen to an export."""

    def __init__(self, exports: ExportSession) -> None:
        super().__init__()
        self.exports = exports
        self.model = ExportsModel()
        self.claims: dict[str, Claim] = {}  # running jobs whose attempt has begun

    @initialize()
    def empty(self) -> None:
        self.exports.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        self.exports.reset()
        self.exports.declare("exports", attempts=2, base=60, cap=3600)
        self.exports.freeze()

    @rule(user=users, document=documents)
    def ask(self, user: str, document: str) -> None:
        said = self.exports.ask(user, item(document), bytes_max=ROOM)
        expected = self.model.ask(user, document)
        if expected == "full":
            assert said["answer"] == "full"
            return
        export = said["items"][0]["id"]
        if isinstance(expected, ModelExport):
            assert (said["items"][0]["answer"], self.model.exports[export]) == ("same", expected)
        else:
            assert said["items"][0]["answer"] == "made"
            self.model.exports[export] = ModelExport(user, document)

    @rule()
    def claim(self) -> None:
        """By a worker of its own, which begins at once."""
        claims = self.exports.claim_limited(self.exports.worker(), 1, empty=True, queue="exports")
        ready = [one for one in self.model.exports.values() if one.job == "ready"]
        assert bool(claims) == bool(ready)
        for claim in claims:
            export = self.exports.value("SELECT payload ->> 'export' FROM livewell.job WHERE id = %s", claim.id)
            one = self.model.exports[export]
            one.job = "running"
            said = self.exports.begin(claim, export, bytes_max=ROOM)["answer"]
            assert (said == "begun") == self.model.begin(one)
            if said == "begun":
                self.claims[export] = claim
            else:
                self.exports.finish(claim)
                one.job = "gone"

    @rule(pick=picks, size=st.sampled_from([1, ESTIMATE, 3 * ESTIMATE]))
    def plan(self, pick: int, size: int) -> None:
        for export, claim in self._running(pick):
            one = self.model.exports[export]
            if not one.planned:
                said = self.exports.plan(claim, export, size, bytes_max=ROOM)
                assert said == self.model.plan(one, size)
                if said != "planned":
                    self._end(export, claim)

    @rule(pick=picks)
    def finish(self, pick: int) -> None:
        for export, claim in self._running(pick):
            one = self.model.exports[export]
            if one.planned:
                size = one.reserved or 1
                assert self.exports.finish_export(claim, export, size) == self.model.finish(one)
                one.job = "gone"
                del self.claims[export]

    @rule(pick=picks, again=st.booleans())
    def fail(self, pick: int, again: bool) -> None:
        for export, claim in self._running(pick):
            one = self.model.exports[export]
            said = self.exports.fail(claim, export, "died", again=again)
            assert said == self.model.fail(one, "died", again=again)
            if again:
                self.exports.settle(claim, "retry", error="died")
                cancelled = one.state == "cancelled"
                one.job = "gone" if cancelled else "dead" if claim.attempt >= 2 else "delayed"
                del self.claims[export]
            else:
                self._end(export, claim)

    @rule(pick=picks)
    def lose_the_worker(self, pick: int) -> None:
        for export, claim in self._running(pick):
            self.exports.expire(claim.worker)
            self.exports.recover(self.exports.steady())
            one = self.model.exports[export]
            one.job = "gone" if one.state == "cancelled" else "ready"
            del self.claims[export]
            assert self.exports.step(claim, export, 90) in ("fenced", "over")

    @rule(pick=picks, deleted=st.booleans())
    def cancel_or_delete(self, pick: int, deleted: bool) -> None:
        for export, one in self._any(pick):
            if deleted:
                said = (self.exports.delete(export, one.user) or {})["answer"]
                assert said == self.model.delete(one)
            else:
                said = (self.exports.cancel_export(export, one.user) or {})["answer"]
                assert (said == "cancelled") == self.model.cancel(one)

    @rule()
    def promote(self) -> None:
        """An hour later."""
        self.exports.advance(3700)
        self.model.now += 3700 / 86400
        self.exports.promote()
        for one in self.model.exports.values():
            if one.job == "delayed":
                one.job = "ready"

    @rule()
    def a_week_later(self) -> None:
        self.exports.rows("UPDATE livewell.worker SET expires_at = expires_at + interval '1 year'")
        self.exports.advance(7 * 86400)
        self.exports.rows("SELECT livewell.ensure_history_days(14)")
        self.model.now += 7

    @rule(pick=picks)
    def redrive(self, pick: int) -> None:
        for export, one in self._any(pick):
            if one.job == "dead":
                self.exports.redrive([self.exports.job_of(export)])
                one.job = "ready"

    @rule(pick=picks)
    def an_operator_cancels_the_job(self, pick: int) -> None:
        for export, one in self._any(pick):
            if one.job in ("ready", "delayed"):
                assert self.exports.cancel(self.exports.job_of(export)) == "cancelled"
                one.job = "gone"
                if one.is_open:
                    self.exports.settle_all()
                    self.model.settle()
                    self.model.settle_jobs()
                    one.state, one.reason = "cancelled", "cancelled"

    @rule()
    def settle(self) -> None:
        self.exports.settle_all()
        self.model.settle()
        self.model.settle_jobs()

    @rule()
    def clean(self) -> None:
        self.exports.clean()
        self.model.clean()

    @invariant()
    def what_the_model_says_is_so(self) -> None:
        seen = {
            export: (state, reason, reserved, stored, progress, files or [])
            for export, state, reason, reserved, stored, progress, files in self.exports.rows(EVERYTHING)
        }
        expected = {
            export: (
                self.model.verdict(one),
                one.reason,
                one.reserved,
                one.stored,
                seen[export][4] if one.state in ("failed", "cancelled") else one.progress,
                [state for _, state in sorted(one.files.items())],
            )
            for export, one in self.model.exports.items()
        }
        assert seen == expected
        assert self.exports.wrong() == []

    def _end(self, export: str, claim: Claim) -> None:
        self.exports.finish(claim)
        self.model.exports[export].job = "gone"
        del self.claims[export]

    def _running(self, pick: int) -> list[tuple[str, Claim]]:
        running = sorted(self.claims)
        return [(running[pick % len(running)], self.claims[running[pick % len(running)]])] if running else []

    def _any(self, pick: int) -> list[tuple[str, ModelExport]]:
        made = list(self.model.exports)
        return [(made[pick % len(made)], self.model.exports[made[pick % len(made)]])] if made else []


def test_exports_do_what_the_model_does(exports: ExportSession) -> None:
    """Sixty lives, or as many as are asked for."""
    chosen = settings(
        max_examples=EXAMPLES or 60,
        stateful_step_count=40,
        deadline=None,
        derandomize=not EXAMPLES,
        suppress_health_check=list(cast("Any", HealthCheck)),
    )
    make = cast("Any", lambda: ExportsMachine(exports))  # called as the class would be
    run_state_machine_as_test(make, settings=chosen)
