"""What exports need by the clock, in whichever worker comes first.

livewell.exports.settle    every 5 seconds   exports whose job ended elsewhere end, too
livewell.exports.cleanup   every minute      expired exports give back their room; files nobody points to go
livewell.exports.sweep     every 6 hours     files of the store that no row knows go
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.exports.artifacts.paths import is_path
from livewell.exports.artifacts.probe import PROBE_USER
from livewell.exports.artifacts.store import ArtifactError, ArtifactStore
from livewell.exports.nudges import CHANGED
from livewell.schedule.definition import OURS, Duty

log = structlog.get_logger("livewell.exports")

SETTLE = f"{OURS}exports.settle"
CLEANUP = f"{OURS}exports.cleanup"
SWEEP = f"{OURS}exports.sweep"
_SETTLE_SECONDS, _CLEANUP_SECONDS, _SWEEP_SECONDS = 5.0, 60.0, 6 * 3600.0
# A write to a bucket that broke off may still arrive; an attempt that lost its job notices within
# a lease.
GRACE_SECONDS = 120.0
_PAGE = 200
_PAGES_MAX = 500  # of one run; the next one goes on
_LISTED = 1000
_AT_ONCE = 8

_SETTLE = "SELECT livewell.settle_exports(%s)"
_EXPIRE = "SELECT livewell.expire_exports(%s)"
_CLAIM = "SELECT o_path, o_user FROM livewell.claim_export_files(%s, %s)"
_FORGET = "SELECT livewell.forget_export_file(%s, %s)"
_UNKNOWN = "SELECT livewell.find_unknown_files(%s)"


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What a cleaning did. `left`: files that the store did not remove, with its reason."""

    removed: int
    left: int = 0
    reason: str = ""


def duties(database: Database, nudger: Nudger, store: ArtifactStore) -> list[Duty]:
    """For one worker."""

    async def settle() -> int:
        settled = int((await database.call(_SETTLE, (_PAGE,)))[0][0])
        if settled:
            nudger.nudge(CHANGED)
        return settled

    async def tidy() -> int:
        return _told(await clean(database, store))

    async def comb() -> int:
        return _told(await sweep(database, store))

    return [
        Duty(SETTLE, _SETTLE_SECONDS, settle),
        Duty(CLEANUP, _CLEANUP_SECONDS, tidy),
        Duty(SWEEP, _SWEEP_SECONDS, comb),
    ]


async def clean(database: Database, store: ArtifactStore, *, grace_seconds: float = GRACE_SECONDS) -> Cleaned:
    """Expire what has expired, and remove every file that nothing points to: file, then row (E11)."""
    removed = 0
    for _ in range(_PAGES_MAX):
        expired = int((await database.call(_EXPIRE, (_PAGE,)))[0][0])
        claimed = [(path, user) for path, user in await database.call(_CLAIM, (_PAGE, grace_seconds))]
        page = await _remove(database, store, claimed)
        removed += page.removed
        if page.left:
            return Cleaned(removed, page.left, page.reason)
        if not expired and not claimed:
            break
    return Cleaned(removed)


async def sweep(database: Database, store: ArtifactStore) -> Cleaned:
    """Remove files of our exports that no row knows, and probes that were left.

    A row is committed before its file, so a file without one has lost it.
    """
    removed = 0
    listed: list[str] = []
    try:
        async for path in store.list():
            if is_path(path):
                listed.append(path)
            if len(listed) >= _LISTED:
                removed += await _remove_unknown(database, store, listed)
                listed.clear()
        removed += await _remove_unknown(database, store, listed)
    except ArtifactError as error:
        return Cleaned(removed, 1, error.reason)
    return Cleaned(removed)


async def _remove_unknown(database: Database, store: ArtifactStore, listed: Sequence[str]) -> int:
    if not listed:
        return 0
    probes = [path for path in listed if path.startswith(f"{PROBE_USER}/")]  # of a doctor that was killed
    unknown = [*probes, *(row[0] for row in await database.call(_UNKNOWN, (list(listed),)))]
    for path in unknown:
        await store.delete(path)
    return len(unknown)


async def _remove(database: Database, store: ArtifactStore, claimed: Sequence[tuple[str, str]]) -> Cleaned:
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(path: str, user: str) -> str:
        async with room:
            try:
                await store.delete(path)  # False, it was not there: as good
            except ArtifactError as error:
                return error.reason
            await database.call(_FORGET, (user, path))
            return ""

    said = await asyncio.gather(*(one(path, user) for path, user in claimed))
    failed = [reason for reason in said if reason]
    return Cleaned(len(said) - len(failed), len(failed), failed[0] if failed else "")


def _told(cleaned: Cleaned) -> int:
    if cleaned.left:
        log.warning("files of exports are left in the store", files=cleaned.left, reason=cleaned.reason)
    return cleaned.removed
