"""What one user does, over and over, and what they saw.

    write ──▶ ask for one, or for a batch ──▶ cancel ──────────────────────────▶ …
                    │                    └──▶ follow ──finished──▶ download ──▶ delete, sometimes
                    └──429, 507: that is an answer                 batch: the ZIP, too

Everything that the server says is checked at once where one answer can be wrong by itself: progress
that goes down, 100 without a file, bytes that are not those of the row, a link that outlives its
file. What needs more than one answer is written down for the verdict.
"""

from __future__ import annotations

import io
import json
import random
import time
import zipfile
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from livewell.apps.resumes.demo.client import Answer, Client, ServerAway
from livewell.apps.resumes.demo.people import resume

DOCUMENTS = 3
END_SECONDS = 240.0  # for what was accepted to end, kills and lost leases included
_POLL_SECONDS = 0.15
_OVER = ("finished", "failed", "cancelled", "deleted", "expired")
_TEMPLATES = ("minimal", "modern", "compact")


@dataclass(frozen=True, slots=True)
class Download:
    """A line of the user's log."""

    export: UUID
    sha256: str
    bytes: int


@dataclass(slots=True)
class Accepted:
    """An export that the server has promised."""

    id: UUID
    seq: int = 0
    attempt: int = 0
    progress: int = 0
    state: str = "waiting"
    cancelled: bool = False
    deleted: bool = False
    sha256: str | None = None


@dataclass(slots=True)
class Saw:
    """The log of one user."""

    accepted: dict[UUID, Accepted] = field(default_factory=dict)
    downloads: list[Download] = field(default_factory=list)
    zips: int = 0
    same: int = 0
    refused: dict[int, int] = field(default_factory=dict)
    lies: list[str] = field(default_factory=list)
    end_seconds: list[float] = field(default_factory=list)


class User:
    """One person with a key, in a thread."""

    def __init__(self, number: int, client: Client, seed: int) -> None:
        self.number = number
        self.saw = Saw()
        self.quits = False
        self._client = client
        self._dice = random.Random(seed * 1000 + number)  # noqa: S311 - choices of a demo
        self._documents: list[tuple[str, int]] = []  # id and latest version

    def is_served(self) -> bool:
        """True once the server answers, and knows what can be exported."""
        try:
            kinds = self._client.ask("GET", "/v1/exports/kinds")
        except ServerAway:
            return False
        return kinds.status == 200 and bool(kinds.json["items"])

    def live(self) -> None:
        """Until told to quit; a server that is away for long is a violation."""
        try:
            self._write_all()
            while not self.quits:
                self._once()
        except ServerAway as away:
            self._lie(f"the server was away for too long: {away}")

    def finish(self) -> None:
        """Wait for the end of everything accepted, and load once more what is there to be loaded."""
        give_up = time.monotonic() + END_SECONDS
        for one in self.saw.accepted.values():
            while one.state not in _OVER and time.monotonic() < give_up:
                self._look(one)
            if one.state not in _OVER:
                self._lie(f"export {one.id} was accepted and has not ended: {one.state} at {one.progress}")
            elif one.state == "finished":
                self._download(one)
        self._client.close()

    # ── what they do ──

    def _write_all(self) -> None:
        for n in range(DOCUMENTS):
            body = {"document": resume(self.number, n, 1), "request": f"demo-{self.number}-{n}"}
            made = self._client.insist("POST", "/v1/resumes", body)
            if made.status != 201:
                raise ServerAway(f"no document can be written: {made.status} {made.body[:300].decode()}")
            self._documents.append((made.json["id"], made.json["version"]))

    def _once(self) -> None:
        throw = self._dice.random()
        if throw < 0.2:
            self._edit()
        asked = self._ask_batch() if throw > 0.8 else self._ask_one()
        if not asked:
            time.sleep(1.0)  # no room, or not today
            return
        if self._dice.random() < 0.15:
            self._cancel(self._dice.choice(asked))
        for one in asked:
            self._follow(one)

    def _edit(self) -> None:
        n = self._dice.randrange(DOCUMENTS)
        key, version = self._documents[n]
        body = {"document": resume(self.number, n, version + 1), "version": version}
        changed = self._client.insist("PUT", f"/v1/resumes/{key}", body)
        if changed.status == 200:
            self._documents[n] = (key, changed.json["version"])

    def _options(self) -> dict[str, Any]:
        return {"template": self._dice.choice(_TEMPLATES), "page": self._dice.choice(("A4", "Letter"))}

    def _ask_one(self) -> list[Accepted]:
        key, version = self._dice.choice(self._documents)
        body = {"document": key, "version": version, "options": self._options()}
        answer = self._client.insist("POST", "/v1/exports", body)
        return [self._accept(answer.json)] if self._is_accepted(answer) else []

    def _ask_batch(self) -> list[Accepted]:
        named = [{"document": key, "version": version} for key, version in self._documents]
        answer = self._client.insist("POST", "/v1/exports/batch", {"documents": named, "options": self._options()})
        if not self._is_accepted(answer):
            return []
        members = [self._accept(one) for one in answer.json["exports"]]
        for one in members:
            self._follow(one, keep=True)
        self._unpack(answer.json["id"], members)
        return members

    def _accept(self, told: dict[str, Any]) -> Accepted:
        key = UUID(told["id"])
        self.saw.same += told["answer"] == "same"
        return self.saw.accepted.setdefault(key, Accepted(key))

    def _is_accepted(self, answer: Answer) -> bool:
        if answer.status == 202:
            return True
        self.saw.refused[answer.status] = self.saw.refused.get(answer.status, 0) + 1
        if answer.status not in (429, 503, 507):
            self._lie(f"a request was answered {answer.status}: {answer.body[:200].decode(errors='replace')}")
        return False

    def _cancel(self, one: Accepted) -> None:
        answer = self._client.insist("POST", f"/v1/exports/{one.id}/cancel")
        if answer.status == 200:
            one.cancelled = True

    def _follow(self, one: Accepted, *, keep: bool = False) -> None:
        begun = time.monotonic()
        while one.state not in _OVER and not self.quits:
            self._look(one)
        if one.state == "finished":
            self.saw.end_seconds.append(time.monotonic() - begun)
            self._download(one)
            if not keep and self._dice.random() < 0.4:
                self._delete(one)

    def _look(self, one: Accepted) -> None:
        """One poll: the steps after the last that was seen."""
        answer = self._client.insist("GET", f"/v1/exports/{one.id}?after={one.seq}")
        if answer.status == 410 and one.deleted:
            one.state = "deleted"
            return
        if answer.status != 200:
            one.state = "failed"
            self._lie(f"export {one.id} was accepted and is answered {answer.status}")
            return
        told = answer.json
        for step in told["steps"]:
            self._check_step(one, step)
        one.state = told["state"]
        if one.cancelled and one.state == "finished":
            self._lie(f"export {one.id} was cancelled, and finished all the same")
        if one.state not in _OVER:
            time.sleep(_POLL_SECONDS)

    def _check_step(self, one: Accepted, step: dict[str, Any]) -> None:
        if step["seq"] <= one.seq:
            self._lie(f"export {one.id}: step {step['seq']} came after step {one.seq}")
        if step["attempt"] == one.attempt and step["progress"] < one.progress and step["state"] == "running":
            self._lie(f"export {one.id}: progress fell from {one.progress} to {step['progress']} in one attempt")
        if (step["progress"] == 100) != (step["state"] in ("finished", "deleted")):
            self._lie(f"export {one.id}: {step['progress']} % while {step['state']}")
        one.seq, one.attempt, one.progress = step["seq"], step["attempt"], step["progress"]

    def _download(self, one: Accepted) -> None:
        link = self._client.insist("POST", f"/v1/exports/{one.id}/link")
        if link.status not in (200, 201):
            self._lie(f"export {one.id} is finished, and has no link: {link.status}")
            return
        file = self._client.follow_link(link.json["url"])
        row = self._client.insist("GET", f"/v1/exports/{one.id}").json
        if file.status != 200:
            self._lie(f"export {one.id} is finished, and its link answers {file.status}")
            return
        self.saw.downloads.append(Download(one.id, file.sha256, len(file.body)))
        if (file.sha256, len(file.body)) != (row["sha256"], row["bytes"]):
            self._lie(f"export {one.id}: its link gives {file.sha256}, its row says {row['sha256']}")
        if one.sha256 not in (None, file.sha256):
            self._lie(f"export {one.id}: two downloads differ")
        one.sha256 = file.sha256

    def _delete(self, one: Accepted) -> None:
        link = self._client.insist("POST", f"/v1/exports/{one.id}/link")
        answer = self._client.insist("DELETE", f"/v1/exports/{one.id}")
        if answer.status != 200:
            self._lie(f"export {one.id} cannot be deleted: {answer.status}")
            return
        one.deleted, one.state = True, "deleted"
        after = self._client.follow_link(link.json["url"])
        if after.status not in (404, 410):
            self._lie(f"export {one.id} is deleted, and its link answers {after.status}")

    def _unpack(self, batch: str, members: list[Accepted]) -> None:
        """The ZIP of a batch: whole, with a manifest that is true."""
        answer = self._client.insist("GET", f"/v1/exports/batch/{batch}/zip")
        if answer.status != 200:
            if any(one.state == "finished" for one in members):
                self._lie(f"batch {batch} has files, and its ZIP answers {answer.status}")
            return
        self.saw.zips += 1
        if int(answer.headers["content-length"]) != len(answer.body):
            self._lie(f"batch {batch}: the ZIP has {len(answer.body)} bytes, announced otherwise")
        with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
            broken = archive.testzip()
            names = archive.namelist()
            manifest = json.loads(archive.read(names[0]))
            found = {Answer(200, {}, archive.read(name)).sha256 for name in names[1:]}
        wanted = {one.sha256 for one in members if one.sha256}
        if broken or names[0] != "manifest.json" or not wanted <= found:
            self._lie(f"batch {batch}: the ZIP lacks files that were downloaded one by one, or is broken ({broken})")
        told = {one.get("sha256") for one in _members(manifest)}
        if not found <= told:
            self._lie(f"batch {batch}: the manifest does not name what the ZIP has")

    def _lie(self, text: str) -> None:
        self.saw.lies.append(f"user {self.number}: {text}")


def _members(manifest: Any) -> list[dict[str, Any]]:
    """Its list of files, whatever it is called."""
    if isinstance(manifest, list):
        return manifest
    return next((value for value in manifest.values() if isinstance(value, list)), [])
