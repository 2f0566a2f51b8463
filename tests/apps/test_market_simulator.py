"""The simulator of FMP over real sockets.

Every path, every refusal, every fault, its limits, its log, its judge.

These tests prove the tool: a fault that does not happen would make every later test pass for
nothing. The client is the standard library's; what http.client would smooth over is read raw.
"""

import asyncio
import gzip
import http.client
import json
import socket
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from livewell.apps.market.simulator import FAULTS, Confined, Knobs, Simulator, SimulatorFailed, credential_name, hostile
from livewell.apps.market.simulator.data.dataset import PATHS, rows_of
from livewell.apps.market.simulator.data.prices import Market
from livewell.apps.market.simulator.oracle.judge import (
    Judge,
    Stored,
    calls,
    calls_above_limit,
    counts,
    families_fired,
    unfaithful,
)
from livewell.apps.market.simulator.oracle.log import LogBroken, read_events
from livewell.apps.market.simulator.oracle.verdict_check import Claim
from livewell.apps.market.simulator.policy.refusals import REFUSALS
from livewell.testing.call_windows import busiest_window, overlaps
from livewell.testing.processes import ChildProcess, eventually

SEED = 7
SYMBOLS = 300
PATIENCE_SECONDS = 20.0
KEY = "canary-5e1f-not-to-be-seen"


class Answered(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def rows(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        [(name, text)] = self.rows.items()
        assert name == "Error Message"
        return str(text)


class Client:
    """What a test does with the simulator, in blocking calls."""

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator

    def get(
        self,
        target: str,
        headers: dict[str, str] | None = None,
        *,
        key: str | None = KEY,
        timeout: float = PATIENCE_SECONDS,
    ) -> Answered:
        connection = http.client.HTTPConnection("127.0.0.1", self.simulator.port, timeout=timeout)
        try:
            connection.request("GET", target, headers={**({"apikey": key} if key else {}), **(headers or {})})
            response = connection.getresponse()
            return Answered(response.status, response.headers, response.read())
        finally:
            connection.close()

    def fault(self, name: str, target: str = "/stable/quote?symbol=AAPL") -> Answered:
        """Let the next answer have this fault, and ask for it."""
        asyncio.run(self.simulator.next(name))
        return self.get(target)

    def turn(self, **knobs: Any) -> None:
        asyncio.run(self.simulator.turn(**knobs))

    def events(self) -> list[dict[str, Any]]:
        return [event for event in read_events(self.simulator.log) if event["event"] == "call"]

    def ended(self) -> dict[str, Any]:
        """Wait for the last call's end, which is written after the client knows."""
        last = self.events()[-1]["n"]

        def found() -> dict[str, Any] | None:
            ends = [event for event in read_events(self.simulator.log) if event["event"] == "ended"]
            return next((event for event in ends if event["n"] == last), None)

        end = eventually(found, PATIENCE_SECONDS)
        assert end is not None
        return end


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    log = tmp_path_factory.mktemp("fmp") / "fmp.log"
    running = asyncio.run(Simulator.start(log, seed=SEED, symbols=SYMBOLS))
    yield running
    asyncio.run(running.stop())


@pytest.fixture
def fmp(simulator: Simulator) -> Iterator[Client]:
    client = Client(simulator)
    yield client
    client.turn(**Knobs().as_json())


# ── answers ──


@pytest.mark.parametrize("path", PATHS)
def test_every_path_answers_with_the_rows_of_its_market(fmp: Client, path: str) -> None:
    """The body is what the model says for the source time in the log, and the log names it by its digest."""
    name = "symbols" if path in ("/stable/batch-quote", "/stable/news/stock") else "symbol"
    answer = fmp.get(f"{path}?{name}=MSFT")
    event = fmp.events()[-1]
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.rows == rows_of(Market(SEED, SYMBOLS), path, ("MSFT",), event["source_at"], {})
    assert (event["path"], event["keys"], event["answer"], event["status"]) == (path, ["MSFT"], "ok", 200)


def test_a_batch_answers_for_those_it_knows(fmp: Client) -> None:
    """Unknown symbols are left out, as at FMP."""
    rows = fmp.get("/stable/batch-quote?symbols=AAPL,NOPE,MSFT").rows
    assert [row["symbol"] for row in rows] == ["AAPL", "MSFT"]


@pytest.mark.parametrize("symbol", ["NOPE", "AAPL,MSFT", "AAPL%2CMSFT", "aapl"])
def test_an_unknown_symbol_is_an_empty_array(fmp: Client, symbol: str) -> None:
    """Also two symbols joined by a comma on a path for one."""
    answer = fmp.get(f"/stable/quote?symbol={symbol}")
    assert (answer.status, answer.body) == (200, b"[]")
    assert fmp.events()[-1]["answer"] == "unknown_symbol"


def test_the_key_comes_by_header_or_by_query_and_is_never_written_down(fmp: Client) -> None:
    """A short hash names it; the secret is nowhere in the log."""
    assert fmp.get("/stable/quote?symbol=AAPL").status == 200
    assert fmp.get(f"/stable/quote?symbol=AAPL&apikey={KEY}", key=None).status == 200
    assert [event["credential"] for event in fmp.events()[-2:]] == [credential_name(KEY)] * 2
    assert KEY.encode() not in fmp.simulator.log.read_bytes()


def test_answers_are_gzipped_for_those_who_ask(fmp: Client) -> None:
    """The same rows, fewer bytes, and the log counts what was sent."""
    plain = fmp.get("/stable/historical-price-eod/full?symbol=AAPL")
    packed = fmp.get("/stable/historical-price-eod/full?symbol=AAPL", {"Accept-Encoding": "gzip, deflate"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 2
    assert len(packed.body) < fmp.events()[-1]["bytes"] < len(packed.body) + 300


def test_a_connection_serves_many_requests_also_when_they_come_at_once(fmp: Client) -> None:
    """Pipelined requests are answered in order."""
    with socket.create_connection(("127.0.0.1", fmp.simulator.port), timeout=PATIENCE_SECONDS) as client:
        request = b"GET /stable/quote?symbol=%s HTTP/1.1\r\napikey: k\r\n%s\r\n"
        client.sendall(request % (b"AAPL", b"") + request % (b"MSFT", b"Connection: close\r\n"))
        data = b"".join(iter(lambda: client.recv(65_536), b""))
    assert data.count(b"HTTP/1.1 200 OK") == 2
    assert data.index(b'"AAPL"') < data.index(b'"MSFT"')


def test_prices_move_by_the_tick_and_stand_still_while_the_exchange_is_closed(fmp: Client) -> None:
    """The timestamp is a multiple of the tick; with sessions it is never outside of one."""
    fmp.turn(tick_seconds=60)
    [row] = fmp.get("/stable/quote?symbol=AAPL").rows
    assert row["timestamp"] % 60 == 0
    assert 0 <= time.time() - row["timestamp"] < 65
    fmp.turn(sessions=True)
    [row] = fmp.get("/stable/quote?symbol=AAPL").rows
    assert datetime.fromtimestamp(row["timestamp"], UTC).weekday() < 5


def test_its_clock_can_travel(fmp: Client) -> None:
    """Source times and the log's wall clock move together, so that a test with a virtual clock can use both."""
    fmp.turn(clock_shift_seconds=86_400 * 30)
    [row] = fmp.get("/stable/quote?symbol=AAPL").rows
    ahead = [row["timestamp"] - time.time(), fmp.events()[-1]["wall"] - time.time()]
    assert all(86_400 * 30 - 60 < seconds < 86_400 * 30 + 60 for seconds in ahead)


# ── refusals ──


def test_every_refusal_speaks_fmps_words(fmp: Client) -> None:
    """Status and words of facts/fmp.md, under the key with the space."""
    quote = "/stable/quote?symbol=AAPL"
    fmp.turn(locked_symbols=["TSLA"], locked_paths=["/stable/earnings"], exclusive_paths=["/stable/news/stock"])
    for answer, words in (
        (fmp.get(quote, key=None), "invalid_key"),
        (fmp.get("/stable/quote?symbol=TSLA"), "entitlement_symbol"),
        (fmp.get("/stable/earnings?symbol=AAPL"), "entitlement_path"),
        (fmp.get("/stable/news/stock?symbols=AAPL"), "exclusive"),
        (fmp.get("/api/v3/quote/AAPL"), "legacy_path"),
        (fmp.get("/stable/quote"), "missing_parameter"),
        (fmp.get("/stable/historical-price-full?symbol=AAPL"), "no_such_path"),
    ):
        assert (answer.status, answer.message) == REFUSALS[words]
    fmp.turn(suspended=[credential_name(KEY)])
    assert fmp.get(quote).message.startswith("Account suspended")
    assert fmp.get(quote, key="another").status == 200
    fmp.turn(suspended=[], credentials=[credential_name("mine")])
    assert (fmp.get(quote).status, fmp.get(quote, key="mine").status) == (401, 200)


def test_calls_above_the_limit_are_refused_per_credential(fmp: Client) -> None:
    """The sixth call in the window gets 429 and FMP's words without Retry-After.

    Another credential does not.
    """
    fmp.turn(calls_max=5, window_seconds=600)
    key = f"limited-{time.monotonic_ns()}"
    answers = [fmp.get("/stable/quote?symbol=AAPL", key=key) for _ in range(7)]
    assert [answer.status for answer in answers] == [200] * 5 + [429] * 2
    assert answers[-1].message.startswith("Limit Reach . Please upgrade your plan")
    assert answers[-1].headers["Retry-After"] is None
    assert fmp.get("/stable/quote?symbol=AAPL", key=key + "b").status == 200
    assert calls_above_limit(fmp.simulator.log, 5, 600) >= 2
    assert [event["answer"] for event in fmp.events()[-3:]] == ["limit", "limit", "ok"]


def test_the_bandwidth_wall_stands_after_the_bytes_are_used(fmp: Client) -> None:
    """Thirty days' bytes, of which some can be said to be used already."""
    key = f"wide-{time.monotonic_ns()}"
    fmp.turn(tick_seconds=86_400)
    fmp.get("/stable/quote?symbol=AAPL")
    size = fmp.events()[-1]["bytes"]
    fmp.turn(bandwidth_bytes_max=1_000_000, bandwidth_bytes_used=1_000_000 - size * 5 // 2)
    answers = [fmp.get("/stable/quote?symbol=AAPL", key=key) for _ in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 200, 429]
    assert answers[-1].message.startswith("Bandwidth Limit Reach . Please upgrade your plan")


def test_what_others_document_can_be_turned_on(fmp: Client) -> None:
    """Limit headers on every answer, and 304 for who has the answer already."""
    key = f"told-{time.monotonic_ns()}"
    fmp.turn(calls_max=2, window_seconds=600, rate_headers=True, etags=True, tick_seconds=86_400)
    first = fmp.get("/stable/quote?symbol=AAPL", key=key)
    assert (first.headers["X-RateLimit-Limit"], first.headers["X-RateLimit-Remaining"]) == ("2", "1")
    again = fmp.get("/stable/quote?symbol=AAPL", {"If-None-Match": first.headers["ETag"]}, key=key)
    assert (again.status, again.body, again.headers["X-RateLimit-Remaining"]) == (304, b"", "0")
    refused = fmp.get("/stable/quote?symbol=AAPL", key=key)
    assert refused.status == 429
    assert 590 <= int(refused.headers["Retry-After"]) <= 600
    assert [event["answer"] for event in fmp.events()[-3:]] == ["ok", "not_modified", "limit"]


def test_a_request_that_is_none_is_refused_and_counted(fmp: Client) -> None:
    """A header injected through a key would show here."""
    for request in (
        b"GARBAGE\r\n\r\n",
        b"GET /stable/quote?symbol=A B HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n broken\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", fmp.simulator.port), timeout=PATIENCE_SECONDS) as client:
            client.sendall(request)
            assert client.recv(65_536).startswith(b"HTTP/1.1 400")
            assert client.recv(1) == b""
        assert fmp.events()[-1]["answer"] == "malformed"


# ── faults ──


def test_faults_that_refuse(fmp: Client) -> None:
    """Each wall and error with its status and words."""
    words = ("error_500", "error_503", "bandwidth", "entitlement_symbol", "entitlement_path", "exclusive")
    for name in (*words, "limited_symbols", "suspended", "invalid_key", "legacy_path"):
        answer = fmp.fault(name)
        assert (answer.status, answer.message) == REFUSALS[name]
        assert fmp.events()[-1]["answer"] == name


def test_every_kind_of_retry_after(fmp: Client) -> None:
    """Seconds, a date to come, a date that is past, a year, nonsense, and none."""
    fmp.turn(retry_after_seconds=30)
    given = {name: fmp.fault(name) for name in FAULTS if name.startswith("rate_")}
    assert {answer.status for answer in given.values()} == {429}
    assert all(answer.message.startswith("Limit Reach .") for answer in given.values())
    headers = {name: answer.headers["Retry-After"] for name, answer in given.items()}
    assert (headers["rate_seconds"], headers["rate_absent"]) == ("30", None)
    assert int(headers["rate_huge"]) == 31_536_000
    now = datetime.now(UTC)
    assert timedelta(seconds=20) < parsedate_to_datetime(headers["rate_date"]) - now < timedelta(seconds=40)
    assert parsedate_to_datetime(headers["rate_past"]) < now
    assert not headers["rate_garbage"].isdecimal()


def test_faults_that_say_something_else(fmp: Client) -> None:
    """HTML with a true and with a lying type, empty answers, error objects, all with status 200."""
    html, lying = fmp.fault("html"), fmp.fault("html_as_json")
    assert (html.status, html.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert (lying.status, lying.headers["Content-Type"]) == (200, "application/json")
    assert html.body == lying.body
    assert html.body.startswith(b"<!doctype html>")
    assert (fmp.fault("empty_array").body, fmp.fault("empty_object").body) == (b"[]", b"{}")
    assert list(fmp.fault("error_message").rows) == ["Error Message"]
    assert list(fmp.fault("error_short").rows) == ["error"]


def test_faults_of_drift(fmp: Client) -> None:
    """A field renamed, a number as text, a field added; nothing else differs."""
    fmp.turn(tick_seconds=86_400)
    [true] = fmp.get("/stable/quote?symbol=AAPL").rows
    [renamed] = fmp.fault("renamed_field").rows
    assert set(true) - set(renamed) == {"price"}
    [text] = fmp.fault("number_as_string").rows
    assert text == {**true, "price": str(true["price"])}
    [added] = fmp.fault("added_field").rows
    assert {name: added[name] for name in true} == true
    assert set(added) > set(true)


def test_faults_of_time_and_place(fmp: Client) -> None:
    """An older answer is the true one of that time; a future one is not true.

    A wrong symbol says so itself.
    """
    [old] = fmp.fault("stale_answer").rows
    assert 600 <= time.time() - old["timestamp"] < 700
    assert fmp.events()[-1]["source_at"] == old["timestamp"]
    assert [old] == rows_of(Market(SEED, SYMBOLS), "/stable/quote", ("AAPL",), old["timestamp"], {})
    [future] = fmp.fault("future_time").rows
    assert future["timestamp"] > time.time() + 80_000
    assert [row["symbol"] for row in fmp.fault("wrong_symbol").rows] == ["MSFT"]


@pytest.mark.parametrize("path", [path for path in PATHS if path != "/stable/profile"])
def test_times_can_be_old_and_future_on_every_path_that_has_them(fmp: Client, path: str) -> None:
    """Dates and wall clocks too, not only Unix seconds."""
    field = PATHS[path].time_field
    target = f"{path}?{'symbols' if path in ('/stable/batch-quote', '/stable/news/stock') else 'symbol'}=AAPL"
    true = max(row[field] for row in fmp.get(target).rows)
    assert max(row[field] for row in fmp.fault("stale_answer", target).rows) < true
    assert max(row[field] for row in fmp.fault("future_time", target).rows) > true


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("nan", b'"price":NaN'),
        ("infinite", b'"price":1e400'),
        ("long_number", b'"price":' + b"9" * 5_000),
        ("deep", b"[" * 2_000),
        ("nul", b"\\u0000"),
        ("surrogate", b"\\ud800"),
        ("not_utf8", b"\xff\xfe"),
    ],
)
def test_faults_that_no_json_library_writes(fmp: Client, name: str, part: bytes) -> None:
    """The bytes are there, literally."""
    answer = fmp.fault(name)
    assert part in answer.body
    assert answer.headers["Content-Type"] == "application/json"


def test_a_duplicate_key_has_two_values(fmp: Client) -> None:
    """Who takes the last one has a price that never was."""
    pairs = json.loads(fmp.fault("duplicate_key").body, object_pairs_hook=list)[0]
    prices = [value for name, value in pairs if name == "price"]
    assert len(prices) == 2
    assert prices[0] != prices[1]


def test_a_truncated_answer_is_whole_http_and_half_json(fmp: Client) -> None:
    """cut_off is the other way round: the head promises more than comes."""
    answer = fmp.fault("truncated")
    assert answer.status == 200
    assert answer.body.startswith(b'[{"symbol":"AAPL"')
    with pytest.raises(json.JSONDecodeError):
        json.loads(answer.body)
    with pytest.raises(http.client.IncompleteRead):
        fmp.fault("cut_off")
    assert fmp.ended()["how"] == "cut"


def test_connections_that_break(fmp: Client) -> None:
    """Reset before the head, reset in the body, closed without an answer.

    The log has the call each time.
    """
    with pytest.raises(ConnectionResetError):
        fmp.fault("reset")
    with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
        fmp.fault("reset_in_body")
    with pytest.raises(http.client.RemoteDisconnected):
        fmp.fault("closed")
    assert [event["answer"] for event in fmp.events()[-3:]] == ["reset", "reset_in_body", "closed"]
    assert fmp.ended()["how"] == "cut"


def test_silence_lasts_until_the_client_leaves(fmp: Client) -> None:
    """Nothing comes, and the log says who gave up."""
    asyncio.run(fmp.simulator.next("never_answers"))
    with pytest.raises(TimeoutError):
        fmp.get("/stable/quote?symbol=AAPL", timeout=0.3)
    end = fmp.ended()
    assert (end["how"], end["bytes"]) == ("client_left", 0)


def test_a_drip_is_slow_and_true(fmp: Client) -> None:
    """Byte after byte, at the rate of the knob."""
    fmp.turn(drip_bytes_per_second=600)
    started = time.monotonic()
    answer = fmp.fault("slow_drip")
    assert time.monotonic() - started > 0.3
    assert answer.rows[0]["symbol"] == "AAPL"
    assert fmp.ended()["bytes"] > len(answer.body)


def test_a_huge_body_stops_when_the_client_does(fmp: Client) -> None:
    """200 MB without a stated length.

    Who leaves after a few is not sent the rest, and the server stays small.
    """
    for _ in range(10):  # without a look at the transport some were sent to the end, into nothing
        asyncio.run(fmp.simulator.next("huge_body"))
        with socket.create_connection(("127.0.0.1", fmp.simulator.port), timeout=PATIENCE_SECONDS) as client:
            client.sendall(b"GET /stable/quote?symbol=AAPL HTTP/1.1\r\napikey: k\r\n\r\n")
            got = 0
            while got < 5_000_000:
                got += len(client.recv(65_536))
        end = fmp.ended()
        assert end["how"] == "client_left"
        assert 5_000_000 <= end["bytes"] < 100_000_000
    assert fmp.simulator.process.rss_bytes() < 300_000_000


def test_a_gzip_bomb_is_small_and_valid(fmp: Client) -> None:
    """A hundred megabytes of valid JSON in a hundred kilobytes, checksum and all, also for who asked for no gzip."""
    answer = fmp.fault("gzip_bomb")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert len(answer.body) < 200_000
    unpacker, size, piece = zlib.decompressobj(31), 0, answer.body
    while piece:
        size += len(unpacker.decompress(piece, 1_000_000))
        piece = unpacker.unconsumed_tail
    assert unpacker.eof  # the checksum was right
    assert size == 100_000_004


def test_latency_is_fixed_or_drawn(fmp: Client) -> None:
    """The answer is logged when the call comes, and ended when it has left."""
    fmp.turn(latency_seconds=0.05, latency_jitter_seconds=0.1)
    started = time.monotonic()
    assert fmp.get("/stable/quote?symbol=AAPL").status == 200
    assert time.monotonic() - started >= 0.05
    end = fmp.ended()
    assert end["how"] == "sent"
    assert end["at_ns"] - fmp.events()[-1]["at_ns"] >= 50_000_000


def test_every_fault_can_be_asked_for_on_every_path_that_it_suits(fmp: Client) -> None:
    """No combination makes the server stumble; what was asked for is what the log says was done."""
    fmp.turn(huge_bytes=200_000, bomb_bytes=1_000_000, drip_bytes_per_second=1e8)
    quiet = {"never_answers", "reset", "reset_in_body", "closed", "cut_off"}
    for path, dataset in PATHS.items():
        target = f"{path}?{'symbols' if path in ('/stable/batch-quote', '/stable/news/stock') else 'symbol'}=AAPL"
        for fault in FAULTS.values():
            if fault.name in quiet or (fault.needs == "time" and not dataset.time_field):
                continue
            if fault.needs == "number" and not dataset.number_field:
                continue
            fmp.fault(fault.name, target)
            assert fmp.events()[-1]["answer"] == fault.name
    assert fmp.get("/stable/quote?symbol=AAPL").status == 200


def test_confined_faults_meet_only_those_they_are_for(fmp: Client) -> None:
    """A wall for one credential is no wall for another."""
    fmp.turn(confined=[Confined(faults={"bandwidth": 1.0}, credentials=(credential_name("poor"),))])
    poor = [fmp.get("/stable/quote?symbol=AAPL", key="poor").status for _ in range(5)]
    assert poor == [429] * 5
    assert [fmp.get("/stable/quote?symbol=AAPL", key="rich").status for _ in range(5)] == [200] * 5


def test_orders_that_make_no_sense_are_refused_with_a_reason(fmp: Client) -> None:
    """A typing error in a knob must not look like a calm upstream."""
    with pytest.raises(SimulatorFailed, match="there is no fault"):
        asyncio.run(fmp.simulator.next("nonsense"))
    with pytest.raises(SimulatorFailed, match="no knob"):
        asyncio.run(fmp.simulator._ask("POST", "/_control", {"knobs": {"nonsense": 1}}))


def test_counts_are_readable_while_it_runs(fmp: Client) -> None:
    """Per fault, per family, and everything else by name."""
    before = asyncio.run(fmp.simulator.counts())
    fmp.fault("html")
    fmp.fault("html_as_json")
    fmp.get("/stable/quote?symbol=NOPE")
    after = asyncio.run(fmp.simulator.counts())
    assert after["faults"]["html"] - before["faults"]["html"] == 1
    assert after["families"]["html"] - before["families"]["html"] == 2
    assert after["answers"]["unknown_symbol"] > before["answers"].get("unknown_symbol", 0)
    assert after["calls"] == len(fmp.events())
    assert counts(fmp.simulator.log)["html"] == after["faults"]["html"]


# ── a process, and its death ──


async def test_three_hundred_hostile_calls_fire_everything_and_the_log_stays_true(tmp_path: Path) -> None:
    """Each family at least ten times over real sockets.

    Every ordinary answer can be made again from its line.
    """
    knobs = Knobs(faults=hostile(), drip_bytes_per_second=1e6, huge_bytes=1_000_000, bomb_bytes=1_000_000)
    async with Simulator(tmp_path / "fmp.log", seed=3, symbols=50, knobs=knobs) as fmp:
        client = Client(fmp)

        def ask(first: int) -> None:
            for number in range(first, 300, 10):
                try:
                    client.get(f"/stable/quote?symbol={['AAPL', 'MSFT', 'NVDA'][number % 3]}", timeout=0.5)
                except (OSError, http.client.HTTPException):
                    continue

        threads = [threading.Thread(target=ask, args=(first,)) for first in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)
        fired = families_fired(fmp.log)
    assert len(calls(fmp.log)) == 300
    assert min(fired.values()) >= 10, fired
    assert unfaithful(fmp.log) == []
    assert counts(fmp.log)["ok"] > 50


async def test_kill_9_leaves_a_readable_log_and_a_restart_goes_on(tmp_path: Path) -> None:
    """Every call that was answered is in the log.

    Numbers, limit and prices go on where they were.
    """
    log = tmp_path / "fmp.log"
    knobs = Knobs(calls_max=50, window_seconds=600, tick_seconds=86_400)
    async with Simulator(log, seed=3, symbols=50, knobs=knobs) as fmp:
        client = Client(fmp)
        before = [(await asyncio.to_thread(client.get, "/stable/quote?symbol=AAPL")).rows for _ in range(30)]
        port = fmp.port
        await fmp.kill()
        with log.open("ab") as torn:
            torn.write(b'{"event":"call","n":31,"at_')  # what kill -9 may leave
        assert len(client.events()) == 30
        await fmp.restart()
        assert fmp.port == port
        after = [await asyncio.to_thread(client.get, "/stable/quote?symbol=AAPL") for _ in range(25)]
    assert [answer.status for answer in after] == [200] * 20 + [429] * 5
    assert after[0].rows == before[0]
    assert [event["n"] for event in client.events()] == list(range(1, 56))
    with log.open("ab") as broken:
        broken.write(b'nonsense\n{"event":"ended","n":1,"at_ns":1,"how":"sent","bytes":1}\n')
    with pytest.raises(LogBroken, match="no start after it"):
        client.events()


async def test_kill_9_under_load_loses_no_answer_that_a_client_has(tmp_path: Path) -> None:
    """Whatever the instant of death: what was answered was logged before."""
    log = tmp_path / "fmp.log"
    async with Simulator(log, seed=3, symbols=50) as fmp:
        client, answered = Client(fmp), [0]

        def ask() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", fmp.port, timeout=PATIENCE_SECONDS)
            try:
                while True:
                    connection.request("GET", "/stable/quote?symbol=AAPL", headers={"apikey": "k"})
                    connection.getresponse().read()
                    answered[0] += 1
            except (OSError, http.client.HTTPException):
                connection.close()

        thread = threading.Thread(target=ask)
        thread.start()
        await asyncio.to_thread(eventually, lambda: answered[0] > 200, PATIENCE_SECONDS)
        await fmp.kill()
        await asyncio.to_thread(thread.join)
    assert answered[0] <= len(client.events()) <= answered[0] + 1


def test_the_process_says_where_it_listens_and_refuses_nonsense(tmp_path: Path) -> None:
    """One JSON line; a wrong knob ends it with 2 and a sentence."""
    module = "livewell.apps.market.simulator"
    with ChildProcess(["-m", module, "--log", str(tmp_path / "a.log"), "--hostile", "--calls-max", "300"]) as child:
        line = json.loads(child.wait_for('"url"', 30))
        assert line["url"] == f"http://127.0.0.1:{line['port']}/stable"
        child.terminate()
        assert child.wait() == 0
    with ChildProcess(["-m", module, "--log", str(tmp_path / "b.log"), "--knobs", '{"tick": 1}']) as child:
        assert child.wait(30) == 2
        assert "no knob 'tick'" in child.lines("stderr")[0]


# ── the judge ──


class Case(NamedTuple):
    log: Path
    row: dict[str, Any]
    at: datetime

    @property
    def source_at(self) -> datetime:
        return datetime.fromtimestamp(self.row["timestamp"], UTC)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A log with one good quote, one of the future, one with a duplicate key, a good history, and a failed key."""
    log = tmp_path_factory.mktemp("judged") / "fmp.log"

    async def run() -> Case:
        async with Simulator(log, seed=11, symbols=60, knobs=Knobs(tick_seconds=86_400)) as fmp:
            client = Client(fmp)
            [row] = (await asyncio.to_thread(client.get, "/stable/quote?symbol=AAPL")).rows
            for name, symbol in (("future_time", "MSFT"), ("duplicate_key", "NVDA"), ("html", "AMZN")):
                await fmp.next(name)
                await asyncio.to_thread(client.get, f"/stable/quote?symbol={symbol}")
            await asyncio.to_thread(client.get, "/stable/historical-price-eod/full?symbol=AAPL")
            await asyncio.to_thread(client.get, "/stable/profile?symbol=AAPL")
            await asyncio.to_thread(client.get, "/stable/batch-quote?symbols=NOPE,TSLA")
            return Case(log, row, datetime.now(UTC))

    return asyncio.run(run())


def reasons(case: Case, *stored: Stored, **options: Any) -> list[str]:
    return [lie.reason for lie in Judge(case.log, **options).never_served(stored)]


def test_the_judge_believes_what_was_served(case: Case) -> None:
    """Under the column names of a table, with decimals, instants and nulls as Postgres gives them."""
    row = {
        "key": "AAPL",
        "price": str(case.row["price"]),
        "day_low": case.row["dayLow"],
        "price_avg50": case.row["priceAvg50"],
    }
    stored = Stored("quote", "AAPL", [{**row, "at": case.source_at}], case.source_at, case.at)
    assert reasons(case, stored, columns={"quote": {"at": "timestamp"}}) == []
    bars = rows_of(Market(11, 60), "/stable/historical-price-eod/full", ("AAPL",), int(time.time()), {})[:50]
    dated = [{**bar, "date": datetime.fromisoformat(bar["date"]).date()} for bar in bars]
    assert reasons(case, Stored("eod", "AAPL", dated), datasets={"eod": "history"}) == []


def test_the_judge_finds_what_never_was(case: Case) -> None:
    """A price off by a cent, another key's row, a future time, a duplicate's last value, a column from nowhere."""
    market, at = Market(11, 60), case.row["timestamp"]
    wrong = {**case.row, "price": round(case.row["price"] + 0.01, 2)}
    [msft] = rows_of(market, "/stable/quote", ("MSFT",), at, {})
    [nvda] = rows_of(market, "/stable/quote", ("NVDA",), at, {})
    later = case.source_at + timedelta(days=1)
    assert reasons(case, Stored("quote", "AAPL", [wrong], case.source_at)) == ["other_value"]
    assert reasons(case, Stored("quote", "AAPL", [msft], case.source_at)) == ["other_value"]
    assert reasons(case, Stored("quote", "AAPL", [case.row], later)) == ["other_source_time"]
    assert reasons(case, Stored("quote", "MSFT", [{**msft, "timestamp": at + 86_400}], later)) == ["no_call"]
    assert reasons(case, Stored("quote", "NVDA", [{**nvda, "price": nvda["price"] + 1}])) == ["no_call"]
    assert reasons(case, Stored("quote", "AMZN", [case.row])) == ["no_call"]
    assert reasons(case, Stored("quote", "AAPL", [{**case.row, "colour": 1}])) == ["unknown_column"]
    assert reasons(case, Stored("quote", "AAPL", [case.row], None, case.at - timedelta(hours=1))) == ["no_call"]
    bars = rows_of(market, "/stable/historical-price-eod/full", ("AAPL",), int(time.time()), {})[:50]
    assert reasons(case, Stored("history", "AAPL", [*bars, {**bars[0], "date": "1999-01-04"}])) == ["other_value"]
    assert reasons(case, Stored("history", "AAPL", bars, whole=True)) == ["other_value"]


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (("quote", "AAPL", "fresh", 0, 60, None), None),
        (("quote", "AAPL", "fresh", 300, 60, None), "not_served"),
        (("quote", "AAPL", "fresh", 300, None, None), None),
        (("quote", "AAPL", "fresh", 0, 60, 10**6), None),
        (("quote", "AAPL", "lagging", 30, 60, 10**6), "not_lagging"),
        (("quote", "AMZN", "fresh", 0, 60, None), "not_served"),
        (("quote", "AMZN", "failing", 0, 60, None), None),
        (("quote", "AMZN", "missing", 0, 60, None), None),
        (("quote", "AAPL", "failing", 300, 60, None), "never_failed"),
        (("quote", "AAPL", "stale", 300, 60, None), None),
        (("quote", "AAPL", "stale", 30, 60, None), "was_served"),
        (("quote", "AAPL", "missing", 30, 60, None), "was_served"),
        (("quote", "NOPE", "missing", 30, 60, None), None),
        (("quote", "TSLA", "fresh", 30, 60, None), None),
        (("profile", "AAPL", "unverifiable", 0, 60, None), None),
        (("quote", "AAPL", "unverifiable", 0, 60, None), "has_a_time"),
    ],
)
def test_the_judge_knows_a_false_verdict(case: Case, claim: tuple[Any, ...], reason: str | None) -> None:
    """Younger than anything served is a lie.

    So is lagging when the source was not, and failing when nothing failed.
    """
    name, key, verdict, later, ttl, age = claim
    said = Claim(name, key, verdict, case.at + timedelta(seconds=later), ttl, age)
    assert [lie.reason for lie in Judge(case.log).false_verdicts([said])] == ([reason] if reason else [])


def test_the_judge_does_not_take_an_answer_on_its_way_for_a_stored_one(case: Case, tmp_path: Path) -> None:
    """A key that failed is failing until the next good answer is stored.

    And everything fails while the simulator is down.
    """
    events = [json.loads(line) for line in case.log.read_text().splitlines()]
    good = next(event for event in events if event["event"] == "call" and event["keys"] == ["AAPL"])
    late = {**good, "n": 1_000, "keys": ["AMZN"], "wall": case.at.timestamp() + 1}
    again = {**events[0], "wall": case.at.timestamp() + 130}
    log = tmp_path / "fmp.log"
    log.write_text("".join(f"{json.dumps(event)}\n" for event in (*events, late, again)))

    def judged(key: str, later: float, lost: Sequence[tuple[float, float]] = ()) -> list[str]:
        said = Claim("quote", key, "failing", case.at + timedelta(seconds=later), 60, None)
        return [lie.reason for lie in Judge(log).false_verdicts([said], lost=lost)]

    assert judged("AMZN", 0) == []
    assert judged("AMZN", 30) == ["was_served"]
    assert judged("AMZN", 30, lost=[(case.at.timestamp(), case.at.timestamp() + 5)]) == []
    assert judged("AAPL", 120) == []


def test_the_judge_counts_windows_and_overlaps(case: Case) -> None:
    """All calls in one window; a limit below their number was not kept.

    Never two at once, since the client asked one by one.
    """
    every = calls(case.log)
    assert busiest_window(every, 60).calls == len(every) == 7
    assert (calls_above_limit(case.log, 7, 60), calls_above_limit(case.log, 5, 60)) == (0, 2)
    assert overlaps(every).total == 1
    assert families_fired(case.log)["future"] == 1
    assert unfaithful(case.log) == []


def test_a_changed_log_is_noticed(case: Case, tmp_path: Path) -> None:
    """With another seed in its first line the same answers cannot be made again."""
    other = tmp_path / "other.log"
    other.write_bytes(case.log.read_bytes().replace(b'"seed":11', b'"seed":12', 1))
    assert unfaithful(other)
