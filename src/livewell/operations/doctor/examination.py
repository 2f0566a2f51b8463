"""Run every check, each on its own, within a bounded time.

connect ──fails──▶ one finding, nothing else can be said
   │──a replica, or a schema that does not fit──▶ that, and nothing else
   ▼
state ──▶ all checks at once ──one that fails or takes too long is itself a finding──▶ findings
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from livewell.capability import offered
from livewell.db import Database
from livewell.errors import ConfigurationError, LivewellError
from livewell.finding import Check, Finding, Patient
from livewell.operations.doctor import server
from livewell.operations.state import failed_parts, read_state
from livewell.settings import Settings

CHECK_SECONDS = 2.0
CONNECT_SECONDS = 2.0


def all_checks() -> list[Check]:
    """Those of every capability."""
    return [check for _, checks in offered("checks") for check in checks]


async def examine(
    conninfo: str, settings: Settings, *, checks: Sequence[Check] | None = None, check_seconds: float = CHECK_SECONDS
) -> list[Finding]:
    """Everything that is not well; an empty list means that nothing was found."""
    quick = settings.model_copy(
        update={"connect_timeout_seconds": CONNECT_SECONDS, "call_timeout_seconds": check_seconds}
    )
    listen = settings.listen_url.get_secret_value() if settings.listen_url is not None else None
    database = Database(conninfo, quick, listen_conninfo=listen)
    try:
        await database.open()
    except (LivewellError, ConfigurationError) as error:
        return [server.unreachable(str(error))]
    try:
        return await diagnose(database, quick, checks, check_seconds=check_seconds)
    finally:
        await database.close()


async def diagnose(
    database: Database,
    settings: Settings,
    checks: Sequence[Check] | None = None,
    *,
    check_seconds: float = CHECK_SECONDS,
) -> list[Finding]:
    """The same for a database that is open; every check if none is given."""
    checks = all_checks() if checks is None else checks
    if database.address.replica:
        return [server.replica()]
    misfits = await _run("schema", server.schema(database.conninfo), check_seconds)
    if any(finding.word in ("schema", "check_failed") for finding in misfits):
        return misfits  # what follows asks functions that may not be there
    try:
        state = await read_state(database)
    except LivewellError as error:
        return [*misfits, _failed("state", str(error))]
    patient = Patient(database, settings, state)
    found = await asyncio.gather(*(_run(check.__name__, check(patient), check_seconds) for check in checks))
    unread = [_failed(f"state {name}", error) for name, error in failed_parts(state).items()]
    return [*misfits, *unread, *(finding for findings in found for finding in findings)]


async def _run(name: str, check: Awaitable[Sequence[Finding]], seconds: float) -> list[Finding]:
    """One check; whatever goes wrong in it is a finding, and the others go on."""
    try:
        async with asyncio.timeout(seconds):
            return list(await check)
    except TimeoutError:
        return [_failed(name, f"it took longer than {seconds:g} s")]
    except Exception as error:  # noqa: BLE001 - becomes a finding: a mistake in one check must not hide what others found
        return [_failed(name, f"{type(error).__name__}: {error}")]


def _failed(name: str, error: str) -> Finding:
    return Finding(
        "check_failed",
        name,
        f"The check {name} could not be made: {error}",
        "Nothing is known about what it looks at. If others failed too, the database is slow or this login may "
        "not read it.",
        "LIVEWELL_LOG_LEVEL=debug livewell doctor",
    )
