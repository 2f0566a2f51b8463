"""A stream stays open while its caller has the scopes that its route asked for, and no longer (L3)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from livewell.server.auth.caller import Caller
from livewell.settings import Settings
from livewell.testing.processes import eventually_async
from livewell.testing.sse_client import EventStream
from tests.integration.server.test_streams import Logins, Viewer, served
from tests.support.http import Web

JOB = """
INSERT INTO livewell.job (id, queue, kind, payload, state, rank, max_attempts, run_at, created_at)
VALUES (64, 'mail', 'mail', '{}', 'ready', 0, 1, now(), now())
"""


def count_renewals(web: Web, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often rights were looked at again."""
    renew, renewed = web.state.auth.renew, list[Caller | None]()

    async def counted(caller: Caller) -> Caller | None:
        renewed.append(await renew(caller))
        return renewed[-1]

    monkeypatch.setattr(web.state.auth, "renew", counted)
    return lambda: len(renewed)


async def test_a_job_stream_needs_operate_and_nothing_else(
    livewell_dsn: str, server_logins: Logins, server_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operate-only key keeps its stream.

    Seen failing on 0.6.0: the stream of an operate-only key ended with `bye rights` at the first
    look, though nothing had changed.
    """
    async with served(livewell_dsn, server_logins, server_settings, push_rights_seconds=0.2) as web:
        web.rows(JOB)
        renewals = count_renewals(web, monkeypatch)

        async def looked_twice() -> bool:
            return renewals() >= 2

        async with await EventStream.open(web.base, "/v1/jobs/64/stream", key=web.key("operate").text) as stream:
            await stream.next("job")
            await eventually_async(looked_twice, timeout=10, what="rights are looked at again")
            web.rows("UPDATE livewell.job SET progress = 50")
            told = await stream.next()

    assert (told[0], told[1]["progress"]) == ("job", 50)


async def test_who_may_no_longer_operate_is_sent_away(
    livewell_dsn: str, server_logins: Logins, server_settings: Settings
) -> None:
    """Though they may still view; and the same when their key is bound to types.

    Seen failing on 0.6.0: the stream went on.
    """
    async with served(livewell_dsn, server_logins, server_settings, push_rights_seconds=0.2) as web:
        web.rows(JOB)
        web.rows("ALTER TABLE livewell.api_key DROP CONSTRAINT IF EXISTS api_key_bound_check")
        for change in ("scopes = '{view}'", "types = '{quote}'"):
            key = web.key("view", "operate").text
            async with await EventStream.open(web.base, "/v1/jobs/64/stream", key=key) as stream:
                await stream.next("job")
                web.rows(f"UPDATE livewell.api_key SET {change}")
                assert await stream.next("bye") == ("bye", {"reason": "rights"})


@pytest.mark.parametrize("kept", ["view", "subscribe"])
async def test_a_session_stream_needs_view_and_subscribe(
    livewell_dsn: str, server_logins: Logins, server_settings: Settings, kept: str
) -> None:
    """As its route does. Seen failing on 0.6.0 for who kept view alone: the stream went on."""
    async with served(livewell_dsn, server_logins, server_settings, push_rights_seconds=0.2) as web:
        viewer = await Viewer.come(web, "view", "subscribe")
        async with await viewer.stream() as stream:
            await stream.until("ready")
            web.rows("UPDATE livewell.api_key SET scopes = ARRAY[%s]", kept)
            assert await stream.next("bye") == ("bye", {"reason": "rights"})
