"""Several children under one supervisor, with real processes that are not workers.

Cheap ones, which die as told.
"""

import asyncio
import sys
from pathlib import Path

import pytest

from livewell.queue.worker.supervisor import Restart, Supervisor
from livewell.testing.history import AppendLog
from livewell.testing.processes import ChildProcess, eventually, eventually_async

QUICK = Restart(base_seconds=0.01, cap_seconds=0.05)
# Says that it is there, then waits for the end of its input or a signal.
OBEDIENT = 'printf "\\036up\\n" >> "$0"; trap "exit 0" TERM; while :; do read -r _ || exit 0; done'
STUBBORN = (
    'trap "printf \\"\\036asked\\\\n\\" >> \\"$0\\"" TERM; printf "\\036up\\n" >> "$0"; while :; do sleep 0.01; done'
)


def shell(script: str, log: AppendLog, processes: int = 1, *, patience_seconds: float = 10) -> Supervisor:
    return Supervisor(
        lambda _: ["/bin/sh", "-c", script, str(log.path)],
        processes,
        patience_seconds=patience_seconds,
        restart=QUICK,
    )


@pytest.fixture
def log(tmp_path: Path) -> AppendLog:
    return AppendLog(tmp_path / "log")


async def said(log: AppendLog, line: str, times: int) -> None:
    await eventually_async(lambda: log.counts()[line] >= times, what=f"{times} × {line!r}")


async def test_as_many_children_run_as_were_asked_for_and_stop_when_told(log: AppendLog) -> None:
    """Each place has its child, and a stop that all obey is an end with 0."""
    supervisor = shell(OBEDIENT, log, 3)
    running = asyncio.create_task(supervisor.run())
    await said(log, "up", 3)
    supervisor.stop()
    assert await running == 0
    assert supervisor.restarts == 0


async def test_a_child_that_dies_is_replaced(log: AppendLog) -> None:
    """Three deaths, three new children, whatever they died of."""
    dies = 'printf "\\036died\\n" >> "$0"; [ "$(wc -l < "$0")" -gt 3 ] && { read -r _; exit 0; }; kill -KILL $$'
    supervisor = shell(dies, log)
    running = asyncio.create_task(supervisor.run())
    await said(log, "died", 4)
    supervisor.stop()
    await running
    assert supervisor.restarts == 3


async def test_a_child_that_is_wrongly_configured_stops_everything(log: AppendLog) -> None:
    """Exit code 2 is not a death: the next child would say the same."""
    first_fails = f'mkdir "$0.first" 2>/dev/null && exit 2; {OBEDIENT}'
    assert await asyncio.wait_for(shell(first_fails, log, 2).run(), 10) == 2


async def test_a_child_that_ignores_the_stop_is_killed_when_patience_is_over(log: AppendLog) -> None:
    """It was asked first; that it had to be killed is an end with 1."""
    supervisor = shell(STUBBORN, log, patience_seconds=0.3)
    running = asyncio.create_task(supervisor.run())
    await said(log, "up", 1)
    supervisor.stop()
    assert await running == 1
    assert log.counts() == {"up": 1, "asked": 1}


async def test_a_second_stop_is_passed_on_and_a_third_kills(log: AppendLog) -> None:
    """What a worker does with a second signal is its own affair; a third leaves it no choice."""
    supervisor = shell(STUBBORN, log, patience_seconds=60)
    running = asyncio.create_task(supervisor.run())
    await said(log, "up", 1)
    supervisor.stop()
    await said(log, "asked", 1)
    supervisor.stop()
    await said(log, "asked", 2)
    supervisor.stop()
    assert await asyncio.wait_for(running, 10) == 1


async def test_a_stop_during_the_back_off_is_not_slept_through(log: AppendLog) -> None:
    """Nobody waits half a minute for a child that is not there."""
    supervisor = Supervisor(
        lambda _: ["/bin/sh", "-c", 'printf "\\036up\\n" >> "$0"; exit 1', str(log.path)],
        1,
        patience_seconds=1,
        restart=Restart(base_seconds=60, cap_seconds=60),
    )
    running = asyncio.create_task(supervisor.run())
    await eventually_async(lambda: supervisor.restarts == 1)
    supervisor.stop()
    assert await asyncio.wait_for(running, 10) == 0


def test_children_end_with_a_supervisor_that_was_killed(log: AppendLog) -> None:
    """Their standard input ends, which is all the notice they get."""
    script = 'printf "\\036up\\n" >> "$0"; read -r _; printf "\\036end\\n" >> "$0"'
    program = (
        "import asyncio\nfrom livewell.queue.worker.supervisor import Supervisor\n"
        f"command = ['/bin/sh', '-c', {script!r}, {str(log.path)!r}]\n"
        "asyncio.run(Supervisor(lambda place: command, 2, patience_seconds=1).run())\n"
    )
    with ChildProcess(["-c", program], program=sys.executable) as parent:
        eventually(lambda: log.counts()["up"] == 2, timeout=30)
        parent.kill()
        eventually(lambda: log.counts()["end"] == 2)


def test_the_pause_doubles_up_to_the_cap_and_is_never_the_same_for_all() -> None:
    """± 20 %, so that children which died together do not come back together."""
    restart = Restart(base_seconds=0.5, cap_seconds=30)
    for deaths, plain in ((1, 0.5), (2, 1.0), (3, 2.0), (7, 30.0), (10_000, 30.0)):
        pauses = {restart.pause(deaths) for _ in range(50)}
        assert plain * 0.8 <= min(pauses) <= max(pauses) <= plain * 1.2
        assert len(pauses) > 1
