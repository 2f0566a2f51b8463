"""Child processes, their histories on disk, and waiting for what no event announces."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from livewell.testing.history import AppendLog, percentile
from livewell.testing.processes import ChildFailed, ChildProcess, eventually, eventually_async, free_port

TICKS = "import time\nfor tick in range(10**9):\n    print('tick', tick)\n    time.sleep(0.005)\n"
STUBBORN = (
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready')\nwhile True: time.sleep(60)\n"
)


def python(source: str, **options: object) -> ChildProcess:
    return ChildProcess(["-c", source], **options)  # type: ignore[arg-type]


def is_gone(pid: int) -> bool:
    """Whether a process is dead; a grandchild's zombie is init's to reap, not ours."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


def test_a_line_is_waited_for_and_returned() -> None:
    """The text may stand anywhere in the line, on either stream."""
    with python("import sys; print('one ready'); print('two ready', file=sys.stderr); sys.stdin.read()") as child:
        assert child.wait_for("one") == "one ready"
        assert child.wait_for(lambda line: line.startswith("two")) == "two ready"
        assert child.wait(timeout=10) == 0
        assert child.lines("stdout") == ["one ready"]
        assert child.lines("stderr") == ["two ready"]


def test_a_mark_tells_new_lines_from_old() -> None:
    """After a mark the lines before it no longer count."""
    with python(TICKS) as child:
        child.wait_for("tick")
        mark = child.mark()
        assert child.wait_for("tick", since=mark) == f"tick {mark}"


def test_last_words_are_found_after_the_end() -> None:
    """A line that is still in the pipe when the child has ended is read, not missed."""
    with python("print('x\\n' * 5000 + 'the very last')") as child:
        assert child.wait_for("the very last") == "the very last"


def test_waiting_for_a_line_that_cannot_come_fails_with_the_childs_words() -> None:
    """When the child ends first we do not wait out the time, and the message shows why it ended."""
    words = r"(?s)waited 3600 s for 'ready'.*ended with 1.*no such database"
    with python("raise SystemExit('no such database')") as child, pytest.raises(ChildFailed, match=words):
        child.wait_for("ready", timeout=3600)


def test_waiting_too_long_fails_with_the_childs_words() -> None:
    """A line or an end that does not come in time is an error that shows what came instead."""
    with python(STUBBORN) as child:
        child.wait_for("ready")
        with pytest.raises(ChildFailed, match=r"(?s)a line for .*test_processes.py:\d+.* runs; .*stdout: ready"):
            child.wait_for(lambda _: False, timeout=0.01)
        with pytest.raises(ChildFailed, match=r"(?s)waited 0.01 s for its end.*stdout: ready"):
            child.wait(timeout=0.01)


def test_a_failing_test_shows_the_childs_words() -> None:
    """Any exception that leaves the block carries the child's last lines as a note."""
    failure = ZeroDivisionError()
    child = python(STUBBORN).start()
    child.wait_for("ready")
    child.__exit__(None, failure, None)
    assert "stdout: ready" in failure.__notes__[0]


def test_the_block_ends_a_child_that_ignores_sigterm() -> None:
    """Leaving the block kills and reaps, whatever the child thinks of it."""
    with python(STUBBORN) as child:
        child.wait_for("ready")
        child.terminate()
        assert child.returncode is None
    assert child.returncode == -signal.SIGKILL
    assert is_gone(child.pid)


def test_the_block_ends_grandchildren_even_of_a_dead_child() -> None:
    """The whole process group goes, also when its leader was killed before."""
    source = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(3600)'])\n"
        "print('grandchild', child.pid)\n"
        "time.sleep(3600)\n"
    )
    with python(source) as child:
        grandchild = int(child.wait_for("grandchild").split()[1])
        child.kill()
        with child._news:
            assert child._news.wait_for(lambda: child._returncode is not None, timeout=10)
        assert not is_gone(grandchild)
    eventually(lambda: is_gone(grandchild), what="the end of the grandchild")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_does_not_outlive_a_runner_that_was_killed(number: signal.Signals) -> None:
    """When the process that holds the block is killed, its child goes too, although it leads its own session.

    Proven by breaking it: before the watchdog, a runner's timeout left a child that filled the
    disk.
    """
    source = (
        "from livewell.testing.processes import ChildProcess\n"
        "with ChildProcess(['-c', 'import time; time.sleep(3600)']) as child:\n"
        "    print('grandchild', child.pid)\n"
        "    child.wait(3600)\n"
    )
    with python(source) as runner:
        grandchild = int(runner.wait_for("grandchild").split()[1])
        runner.send_signal(number)
        eventually(lambda: is_gone(grandchild), what="the end of the killed runner's child")


def test_a_frozen_child_says_nothing_until_it_is_thawed() -> None:
    """SIGSTOP and SIGCONT: the zombie worker of the fault plan."""
    with python(TICKS) as child:
        child.wait_for("tick")
        child.freeze()
        assert Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        child.thaw()
        child.wait_for("tick", since=child.mark())


def test_a_frozen_child_can_be_killed_and_its_signals_do_not_mind_an_ended_one() -> None:
    """kill() needs no thaw; signals after the end, and even after the reaping, are nothing."""
    with python(TICKS) as child:
        child.wait_for("tick")
        child.freeze()
        child.kill()
        assert child.wait(timeout=10) == -signal.SIGKILL
        child.freeze()
        child.thaw()
    child.kill()
    child.freeze()
    child.close()


@pytest.mark.parametrize(("verb", "number"), [("terminate", signal.SIGTERM), ("interrupt", signal.SIGINT)])
def test_polite_signals_reach_the_child(verb: str, number: signal.Signals) -> None:
    """terminate is SIGTERM and interrupt is SIGINT, and the child's own exit code comes back."""
    source = (
        "import signal, sys, time\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(42))\n"
        "print('ready')\n"
        "while True: time.sleep(60)\n"
    )
    with python(source) as child:
        child.wait_for("ready")
        getattr(child, verb)()
        assert child.wait(timeout=10) == 42


def test_a_talkative_child_neither_blocks_nor_fills_our_memory() -> None:
    """Of two hundred thousand lines the last are kept, and the child is never stopped by a full pipe."""
    with python("for n in range(200_000): print(n)", lines_max=10) as child:
        assert child.wait(timeout=60) == 0
        assert child.lines() == [str(n) for n in range(199_990, 200_000)]
        assert child.mark() == 200_000


def test_the_childs_memory_is_measured() -> None:
    """A child that holds 64 MiB shows at least so much."""
    with python("held = b'x' * 2**26; print('ready'); import time; time.sleep(3600)") as child:
        child.wait_for("ready")
        assert 2**26 < child.rss_bytes() < 2**30


def test_env_is_added_to_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child sees our variables and the ones given."""
    monkeypatch.setenv("LIVEWELL_OURS", "ours")
    source = "import os; print(os.environ['LIVEWELL_OURS'], os.environ['LIVEWELL_GIVEN'])"
    with python(source, env={"LIVEWELL_GIVEN": "given"}) as child:
        assert child.wait_for("ours") == "ours given"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a child as someone else")
def test_a_child_can_run_as_another_account() -> None:
    """Servers that refuse root are started as someone else, without root's groups."""
    with ChildProcess(["-c", "id -un; id -Gn"], program="/bin/sh", user="nobody", cwd=Path("/")) as child:
        child.wait()
        assert child.lines() == ["nobody", "nogroup"]


def test_a_child_that_was_not_started_says_so() -> None:
    """The message shows how it is used."""
    with pytest.raises(ChildFailed, match="with ChildProcess"):
        python("pass").wait()


def test_a_free_port_can_be_taken() -> None:
    """Nobody listens there, and we can; nobody gets it who asks the system for any port.

    Seen failing with ports from the system's own range: a server that asked for any port got the
    one that was promised to another (tests/browser).
    """
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = [free_port() for _ in range(20)]
    assert len(set(ports)) == 20
    assert max(ports) < lowest
    with socket.create_server(("127.0.0.1", ports[0])):
        assert free_port() != ports[0]


def test_free_ports_in_a_row() -> None:
    """Both are ours."""
    first = free_port(in_row=2)
    assert free_port() not in {first, first + 1}
    with socket.create_server(("127.0.0.1", first)), socket.create_server(("127.0.0.1", first + 1)):
        pass


def test_eventually_returns_the_first_truthy_answer() -> None:
    """It asks until the answer is yes, and hands it back."""
    answers = iter([0, 0, 7])
    assert eventually(lambda: next(answers), interval=0) == 7


def test_eventually_gives_up_with_a_description() -> None:
    """The message names what was waited for and the last answer.

    A nameless predicate is named by its place.
    """
    with pytest.raises(AssertionError, match=r"waited 0.01 s for the moon; the last answer was \[\]"):
        eventually(list, timeout=0.01, what="the moon")
    with pytest.raises(AssertionError, match=r"test_processes.py:\d+"):
        eventually(lambda: False, timeout=0.01)


async def test_eventually_async_takes_both_kinds_of_predicate() -> None:
    """A plain function and a coroutine function."""
    answers = iter([0, 3, 0, 4])

    async def ask() -> int:
        return next(answers)

    assert await eventually_async(lambda: next(answers), interval=0) == 3
    assert await eventually_async(ask, interval=0) == 4


async def test_eventually_async_gives_up_on_a_predicate_that_hangs() -> None:
    """The bound holds for the question too, not only for the pauses between questions."""

    async def hang() -> bool:
        await asyncio.Event().wait()
        return True

    with pytest.raises(AssertionError, match=r"for .*hang.*the last answer was 'no answer yet'"):
        await eventually_async(hang, timeout=0.01)


async def test_a_predicates_own_timeout_is_not_taken_for_ours() -> None:
    """A TimeoutError raised by the predicate itself is passed on."""

    async def fail() -> bool:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await eventually_async(fail)


def test_lines_of_many_processes_never_mix(tmp_path: Path) -> None:
    """Three processes append while others are killed over their writes.

    Every line is whole, and none is missing.

    Proven by breaking it: without the record's start mark a killed writer's torn line swallowed its
    neighbour's.
    """
    log = AppendLog(tmp_path / "history")
    source = (
        "import sys\nfrom pathlib import Path\nfrom livewell.testing.history import AppendLog\n"
        "_, path, name, lines = sys.argv\n"
        "for n in range(int(lines)):\n"
        "    AppendLog(Path(path)).append(f'{name} {n} ' + name * 5000)\n"
        "    if n == 0: print('writing')\n"
    )
    writers = [ChildProcess(["-c", source, log.path, name, "300"]) for name in "abc"]
    with writers[0], writers[1], writers[2]:
        for name in "xyz":
            with ChildProcess(["-c", source, log.path, name, "20000"]) as doomed:
                doomed.wait_for("writing")
                doomed.kill()
                assert doomed.wait() == -signal.SIGKILL
        assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    lines = log.read()
    for name in "abc":
        assert [line for line in lines if line[0] == name] == [f"{name} {n} " + name * 5000 for n in range(300)]
    assert {line.split()[2] for line in lines} == {name * 5000 for name in "abcxyz"}


def test_a_torn_line_is_dropped_and_its_neighbours_stand(tmp_path: Path) -> None:
    """The start of a line whose writer was killed is neither a line nor part of one, even torn inside a character."""
    log = AppendLog(tmp_path / "history")
    log.append("job 1")
    with log.path.open("ab") as file:
        file.write("\x1ejob 1é".encode()[:-1])
    assert log.read() == ["job 1"]
    log.append("job 2")
    assert log.read() == ["job 1", "job 2"]


def test_a_log_counts_its_lines_and_takes_only_lines(tmp_path: Path) -> None:
    """An absent file is an empty history; a line end inside a line would forge an event."""
    log = AppendLog(tmp_path / "history")
    assert log.read() == []
    for line in ("job 1", "job 2\x85", "job 1"):
        log.append(line)
    assert log.read() == ["job 1", "job 2\x85", "job 1"]
    assert log.counts() == {"job 1": 2, "job 2\x85": 1}
    for line in ("job 1\njob 2", "job 1\x1ejob 2", "x" * 65_536):
        with pytest.raises(ValueError, match="one line of at most 65536 bytes"):
            log.append(line)


@pytest.mark.parametrize(("p", "expected"), [(0, 1), (50, 5), (90, 9), (95, 10), (100, 10)])
def test_a_percentile_is_a_value_that_was_measured(p: float, expected: float) -> None:
    """Nearest rank over the values one to ten, given in any order."""
    assert percentile([3, 1, 2, 10, 9, 8, 7, 6, 5, 4], p) == expected


def test_a_percentile_of_nothing_is_an_error() -> None:
    """No values, or a p that is no percentage, is the caller's mistake."""
    with pytest.raises(ValueError, match="of 0 values"):
        percentile([], 50)
    with pytest.raises(ValueError, match="between 0 and 100"):
        percentile([1.0], 101)


def test_the_interpreter_is_ours_by_default() -> None:
    """A child runs the Python that runs the test, so that it finds the same livewell."""
    assert ChildProcess(["-V"]).command == [sys.executable, "-V"]
