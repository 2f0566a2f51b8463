"""Exports in a page of Python: states, what is reserved and stored, which files there are.

Sizes are small numbers: a request reserves ESTIMATE, a user has ROOM.
"""

from __future__ import annotations

from dataclasses import dataclass, field

ESTIMATE = 1000
ROOM = 4000
WEEK = 7.0


@dataclass(slots=True, eq=False)
class ModelExport:
    """One export. job: ready, running, delayed, dead or gone."""

    user: str
    document: str
    state: str = "waiting"
    job: str = "ready"
    reason: str | None = None
    reserved: int = ESTIMATE
    stored: int = 0
    progress: int = 0
    ended: float = 0.0
    planned: bool = False
    files: dict[int, str] = field(default_factory=dict)  # by attempt: writing, stored, removing
    attempt: int = 0
    live_attempt: int | None = None  # whose job runs

    @property
    def is_open(self) -> bool:
        return self.state in ("waiting", "running")


class ExportsModel:
    """What the database must say after each step."""

    def __init__(self) -> None:
        self.exports: dict[str, ModelExport] = {}
        self.now = 0.0  # days

    def used(self, user: str) -> tuple[int, int]:
        """Stored and reserved."""
        mine = [one for one in self.exports.values() if one.user == user]
        return sum(one.stored for one in mine), sum(one.reserved for one in mine)

    def ask(self, user: str, document: str) -> str | ModelExport | None:
        """The unfinished one, `full`, or None: a new one is made."""
        self.settle(user)
        self.expire(user)
        for one in self.exports.values():
            if (one.user, one.document) == (user, document) and one.is_open:
                return one
        return "full" if sum(self.used(user)) + ESTIMATE > ROOM else None

    def verdict(self, one: ModelExport) -> str:
        return "expired" if one.state == "finished" and self.now >= one.ended + WEEK else one.state

    def begin(self, one: ModelExport) -> bool:
        """Whether an attempt begins; its job has been claimed."""
        if one.state == "failed":
            if self._twin(one) or sum(self.used(one.user)) + ESTIMATE > ROOM:
                return False
            one.reserved = ESTIMATE
        elif not one.is_open:
            return False
        one.state, one.progress = "running", 0
        one.attempt += 1
        one.live_attempt, one.planned = one.attempt, False
        return True

    def plan(self, one: ModelExport, size: int) -> str:
        if one.state != "running":
            return "over"
        stored, reserved = self.used(one.user)
        if size > one.reserved and stored + reserved - one.reserved + size > ROOM:
            self._end(one, "failed", "quota")
            return "full"
        one.reserved, one.planned, one.progress = size, True, 75
        one.files[one.attempt] = "writing"
        return "planned"

    def finish(self, one: ModelExport) -> str:
        if one.state != "running":
            one.files[one.attempt] = "removing"
            return "over"
        one.state, one.reason, one.progress, one.ended = "finished", None, 100, self.now
        one.stored, one.reserved = one.reserved, 0
        one.files[one.attempt] = "stored"
        return "finished"

    def fail(self, one: ModelExport, reason: str, *, again: bool) -> str:
        if one.state != "running":
            return "over"
        if again:
            one.state, one.reason, one.progress = "waiting", reason, 0
        else:
            self._end(one, "failed", reason)
        return "failed"

    def cancel(self, one: ModelExport) -> bool:
        self.settle(one.user)
        if not one.is_open:
            return False
        self._end(one, "cancelled", "cancelled")
        return True

    def delete(self, one: ModelExport) -> str:
        if one.is_open:
            return "cancelled" if self.cancel(one) else "ended"
        if one.state != "finished":
            return "ended"
        one.state, one.stored = "deleted", 0
        one.files = {number: "removing" if state == "stored" else state for number, state in one.files.items()}
        return "deleted"

    def settle(self, user: str | None = None) -> None:
        """Exports whose job is over, and that are not."""
        for one in self.exports.values():
            if one.is_open and one.job in ("dead", "gone") and user in (None, one.user):
                self._end(one, "failed", one.reason or "internal" if one.job == "dead" else "lost")

    def settle_jobs(self) -> None:
        """Waiting jobs of what was cancelled."""
        for one in self.exports.values():
            if one.state == "cancelled" and one.job in ("ready", "delayed"):
                one.job = "gone"

    def expire(self, user: str | None = None) -> None:
        for one in self.exports.values():
            if one.stored and self.verdict(one) == "expired" and user in (None, one.user):
                one.stored = 0
                one.files = {number: "removing" if state == "stored" else state for number, state in one.files.items()}

    def clean(self) -> None:
        self.expire()
        for one in self.exports.values():
            live = one.live_attempt if one.job == "running" else None
            one.files = {
                number: state
                for number, state in one.files.items()
                if state == "stored" or (state == "writing" and number == live)
            }

    def _twin(self, one: ModelExport) -> bool:
        return any(
            other is not one and other.is_open and (other.user, other.document) == (one.user, one.document)
            for other in self.exports.values()
        )

    def _end(self, one: ModelExport, state: str, reason: str) -> None:
        one.state, one.reason, one.reserved, one.ended = state, reason, 0, self.now
