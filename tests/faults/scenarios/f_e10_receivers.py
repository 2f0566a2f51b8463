"""F-E10: receivers of alerts that are slow, unwell, gone, redirect, or are well; all at once.

F-A4: a sender that is frozen between sending and recording.

Senders are processes of their own that tell people in a loop, as two workers do. The judges are the
receivers' own logs. Time is the database's clock, which the scenario moves.

F-E10 holds: the well receiver gets every firing exactly once (how long it waited for the others is
a figure); the one that is gone is asked once; nobody is told in the place of one that redirects; a
chat that never answers has nothing twice; the unwell one is tried a bounded number of times, and
what it never took is recorded as refused. F-A4 holds: a webhook is told at least once, with the
same id every time, and the late answer of the frozen one changes nothing for the worse; a chat is
told at most once.

Can it fail? Yes, seen in F-A4: with a message id of each attempt's own, and unknown outcomes sent
to chats again, it reports both.
"""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from livewell.db.migrate import migrate
from livewell.db.scratch import TestClock
from livewell.testing.processes import ChildProcess, eventually_async
from tests.faults.scenario import Findings, Scale, Scenario
from tests.support.alerts_sql import AlertSession
from tests.support.receiver import Received, Receiver, Reply, always, reply, silence
from tests.support.servers import new_database

SENDER = """
import asyncio, json, sys
from pydantic import SecretStr
from livewell.alerts.channel import Channel
from livewell.alerts.deliver import deliver, outbound_to
from livewell.db import Database
from livewell.outbound import Outbound
from livewell.settings import Settings

class Patient:
    # A short deadline for the receiver that never answers. The others answer at once, and a busy machine must not make them late.

    def __init__(self, usual, short, slow):
        self.usual, self.short, self.slow = usual, short, slow

    async def post(self, url, *arguments, **options):
        return await (self.short if url in self.slow else self.usual).post(url, *arguments, **options)

async def main(dsn, given, turns):
    settings = Settings(database_url=SecretStr(dsn), outbound_private_hosts=("127.0.0.1",), alert_send_seconds=60, log_level="error")
    database = Database(dsn, settings)
    await database.open()
    channels = [
        Channel(name, kind, "P2", "env:X", SecretStr(url), SecretStr("signed by a scenario") if kind == "webhook" else None)
        for name, kind, url in json.loads(given)
    ]
    slow = [url for name, _, url in json.loads(given) if name == "slow"]
    hosts = {"allowed_hosts": ["127.0.0.1"], "private_hosts": ["127.0.0.1"]}
    async with outbound_to(database, channels) as usual, Outbound(deadline_seconds=1, **hosts) as short:
        for _ in range(int(turns)):
            await deliver(database, channels, outbound=Patient(usual, short, slow))
            await asyncio.sleep(0.05)
    await database.close()

asyncio.run(main(*sys.argv[1:]))
"""
ATTEMPTS_MAX = 8


@contextmanager
def _database(scale: Scale) -> Iterator[tuple[str, AlertSession]]:
    """A migrated database with a clock that can be moved."""
    with new_database(scale.server) as dsn:
        migrate(dsn)
        TestClock(dsn)
        with AlertSession(dsn) as session:
            yield dsn, session


def _sender(scale: Scale, dsn: str, channels: list[tuple[str, str, str]], turns: int) -> ChildProcess:
    script = scale.folder / "sender.py"
    script.write_text(SENDER)
    given = str([list(one) for one in channels]).replace("'", '"')
    return ChildProcess([Path(script), dsn, given, str(turns)], program=sys.executable)


async def run_receivers(scale: Scale) -> Findings:
    """All kinds at once, two senders, firings that keep coming."""
    findings = Findings()
    firings = scale.pick(6, 60)
    with _database(scale) as (dsn, alerts):
        async with (
            Receiver() as well,
            Receiver(silence) as slow,
            Receiver(always(500)) as unwell,
            Receiver(always(410)) as gone,
            Receiver() as lost,
            Receiver() as elsewhere,
        ):
            lost.answer = always(302, Location=elsewhere.url)
            named = {"well": well, "slow": slow, "unwell": unwell, "gone": gone, "lost": lost}
            channels = [(name, "discord", one.url) for name, one in named.items()]
            delays: list[float] = []
            with _sender(scale, dsn, channels, 10_000) as first, _sender(scale, dsn, channels, 10_000) as second:
                for n in range(firings):
                    begun = time.monotonic()
                    alerts.observe(*(f"roof {m}" for m in range(n + 1)))
                    await eventually_async(functools.partial(_has, well, n + 1), timeout=300)
                    delays.append(time.monotonic() - begun)
                    # Recorded before the clock moves: what is still under way then would be given
                    # up as unknown.
                    await eventually_async(functools.partial(_idle, alerts), timeout=300)
                    alerts.advance(700)
                for _ in range(ATTEMPTS_MAX + 1):  # the unwell one, to the end of its attempts
                    alerts.advance(700)
                    await eventually_async(functools.partial(_idle, alerts), timeout=300)
                for child in (first, second):
                    child.kill()
            findings.fired = sum(len(one.received) for one in (slow, unwell, gone, lost))
            _judge(findings, alerts, named, firings)
            findings.check(elsewhere.connections == 0, f"{elsewhere.connections} connections to where a redirect led")
            findings.figures["head_of_line_seconds_max"] = round(
                max(delays[1:]), 2
            )  # the first waits for the senders to start
    return findings


def _has(receiver: Receiver, n: int) -> bool:
    return len(receiver.received) >= n


def _idle(alerts: AlertSession) -> bool:
    """Nothing is being sent, and nothing is due now.

    What waits for a channel that is disabled is not due.
    """
    return not alerts.value(
        "SELECT count(*) FROM livewell.notification n JOIN livewell.alert_channel c ON c.name = n.channel "
        "WHERE c.disabled_at IS NULL AND (n.state = 'pending' OR n.state = 'waiting' AND n.next_at <= livewell.now())"
    )


def _judge(findings: Findings, alerts: AlertSession, named: dict[str, Receiver], firings: int) -> None:
    most = {name: max(Counter(one.body for one in given.received).values(), default=0) for name, given in named.items()}
    findings.check(
        len(named["well"].received) == firings, f"the well one has {len(named['well'].received)} of {firings}"
    )
    findings.check(most["well"] == 1, "the well one has something twice")
    findings.check(most["slow"] == 1, "a chat that never answered was told again")
    findings.check(
        len(named["gone"].received) == 1, f"the one that is gone was asked {len(named['gone'].received)} times"
    )
    findings.check(most["lost"] <= 1, "the redirecting one was asked again")
    findings.check(most["unwell"] <= ATTEMPTS_MAX, f"the unwell one was asked {most['unwell']} times for one message")
    states = Counter(alerts.rows("SELECT channel, state::text FROM livewell.notification"))
    findings.check(states["well", "sent"] == firings, f"recorded as sent: {states['well', 'sent']} of {firings}")
    findings.check(states["slow", "unknown"] == firings, f"recorded as unknown: {states['slow', 'unknown']}")
    findings.check(states["unwell", "refused"] == firings, f"recorded as refused: {states['unwell', 'refused']}")
    findings.figures = {
        "firings": firings,
        "told_once": len(named["well"].received),
        "told_twice": sum(most[name] > 1 for name in ("well", "slow", "lost")),
        "unknown": states["slow", "unknown"],
        "attempts_at_the_unwell": most["unwell"],
        "asked_the_one_that_is_gone": len(named["gone"].received),
    }


async def run_frozen(scale: Scale) -> Findings:
    """The receiver freezes its sender as it takes the message; another sender comes.

    The frozen one wakes up.
    """
    findings = Findings()
    rounds = scale.pick(2, 20)
    duplicates = differing = 0
    with _database(scale) as (dsn, alerts):
        for n in range(rounds):
            for kind in ("webhook", "discord"):
                alerts.reset()
                seen, ids, state = await _freeze(scale, dsn, alerts, kind, f"roof {n}")
                findings.fired += 1
                ends = {
                    "webhook": {"sent"},
                    "discord": {"sent", "unknown"},
                }  # its own deadline may have run out meanwhile
                findings.check(state in ends[kind], f"{kind}: the end is {state}")
                findings.check(seen >= 1 and (kind == "webhook" or seen == 1), f"{kind}: it came {seen} times")
                duplicates += kind == "webhook" and seen > 1
                differing += len(ids) > 1
    findings.check(differing == 0, f"{differing} duplicates with another id")
    findings.figures = {"rounds": rounds, "duplicates": duplicates, "duplicates_with_another_id": differing}
    return findings


async def _freeze(scale: Scale, dsn: str, alerts: AlertSession, kind: str, subject: str) -> tuple[int, set[str], str]:
    frozen: list[ChildProcess] = []
    thawed = asyncio.Event()

    async def freeze_the_sender(_: Received) -> Reply:
        if not thawed.is_set() and len(receiver.received) == 1:
            os.kill(frozen[0].pid, signal.SIGSTOP)
            await thawed.wait()
        return reply(204)

    alerts.observe(subject)
    async with Receiver(freeze_the_sender) as receiver:
        channels = [("ops", kind, receiver.url)]
        with _sender(scale, dsn, channels, 1) as first:
            frozen.append(first)
            await eventually_async(lambda: len(receiver.received) == 1, timeout=300)
            alerts.advance(200)
            for _ in range(2):  # one finds the attempt given up, the next may send
                with _sender(scale, dsn, channels, 1) as other:
                    await asyncio.to_thread(other.wait, 300)
                alerts.advance(200)
            thawed.set()
            os.kill(first.pid, signal.SIGCONT)
            await asyncio.to_thread(first.wait, 300)
        ids = {one.headers.get("webhook-id", "") for one in receiver.received}
        return len(receiver.received), ids, alerts.told()[0]


SCENARIOS = (
    Scenario("F-E10", "Receivers of alerts that are slow, unwell, gone, or redirect", run_receivers),
    Scenario("F-A4", "A sender of alerts frozen between sending and recording", run_frozen),
)
