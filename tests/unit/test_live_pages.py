"""Open pages of the dashboard: what their tabs are told, how much work they may be, and what is not sent twice.

No server and no database: a page of this module, painted when the test says so.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from livewell.capability import Capability, View
from livewell.errors import DatabaseUnavailable, JobNotFound
from livewell.server.answers.problems import Problem, not_found
from livewell.server.auth.caller import Caller
from livewell.server.bounds.client_shares import ClientShares
from livewell.server.dashboard.frame import Frame
from livewell.server.dashboard.live import PAINT_RESTS, PAINT_SECONDS, Paintings, Tab, rest_seconds
from livewell.server.dashboard.page_stream import SharedStream
from livewell.server.dashboard.visit import Elsewhere, Loaded, Panel, Visit, loaded
from livewell.server.process import ServerProcess

WORDS = {"words": "as it is"}
STATEMENT = "SELECT secret_thing"
answer: list[Callable[[], Sequence[Panel] | Elsewhere]] = []  # what the page answers now
looks: list[str] = []


async def panels(visit: Visit) -> Sequence[Panel] | Elsewhere:
    """The page of this module."""
    looks.append(visit.path)
    return answer[-1]()


def plain() -> Sequence[Panel]:
    async def load() -> Loaded:
        return loaded(**WORDS)

    return [Panel("one", "One", "ui_words.html", load), Panel("two", "Two", "ui_words.html", load)]


def raising(error: Exception) -> Callable[[], Sequence[Panel]]:
    def page() -> Sequence[Panel]:
        raise error

    return page


@dataclass
class Rests:
    """Stands for asyncio.sleep: a painting rests until the test lets it go on."""

    seconds: list[float] = field(default_factory=list)
    resting: list[asyncio.Future[None]] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, seconds: float) -> None:
        over = asyncio.get_running_loop().create_future()
        self.seconds.append(seconds)
        self.resting.append(over)
        self.begun.set()
        await over


class Stage:
    """Paintings of this module's pages, for callers with a name and scopes."""

    def __init__(self, **settings: Any) -> None:
        views = (
            View("/page/{name}", "Is it?", f"{__name__}:panels"),
            View("/question", "Really?", f"{__name__}:panels", live=False),
        )
        self.rests = Rests()
        self.paintings = Paintings(Frame([Capability("stage", views=views)]), self.rests)

        async def open_looks() -> None:
            pass

        given = {"user_pages_max": 6, "push_beat_seconds": 15.0, **settings}
        self.places = ClientShares(1, 2)
        state = SimpleNamespace(
            looks=SimpleNamespace(open=open_looks, paintings=self.places), settings=SimpleNamespace(**given)
        )
        self._state = cast("ServerProcess", state)
        self._tabs: list[Tab] = []

    def follow(self, address: str = "/page/a", user: str = "ann", scope: str = "operate", has: str = "") -> Tab:
        caller = Caller(user, f"user:{user}", "key", frozenset({scope}))
        tab = self.paintings.follow(address, self._state, caller, "token", frozenset(has.split(",")))
        self._tabs.append(tab)
        return tab

    async def painted(self) -> None:
        """Until every page that is open is painted again."""
        for over in self.rests.resting:
            if not over.done():  # its tabs may have gone
                over.set_result(None)
        self.rests.resting.clear()
        async with asyncio.timeout(5):
            while len(self.rests.resting) < len(self.paintings._open):
                self.rests.begun.clear()
                await self.rests.begun.wait()

    def close(self) -> None:
        for tab in self._tabs:
            tab.close()


@pytest.fixture
def stage() -> Iterator[Stage]:
    """One page, which is read without trouble until the test says otherwise."""
    answer[:] = [plain]
    looks.clear()
    made = Stage()
    yield made
    made.close()


def events(source: Tab | SharedStream) -> list[tuple[str, dict[str, Any]]]:
    """What is sent now."""
    found = re.findall(rb"event: (\w+)\ndata: (.*)\n\n", source.next() or b"")
    return [(name.decode(), orjson.loads(data)) for name, data in found]


def heard(tab: Tab, *, order: bool = False) -> list[tuple[str, dict[str, Any]]]:
    """What a tab is sent now, the only one of its stream; which panels there are only if that is asked for."""
    sent = events(tab)
    assert all(document.pop("page") == 0 for _, document in sent)
    return [(name, document) for name, document in sent if order or name != "order"]


async def test_a_page_that_cannot_be_read_says_so_once_and_when_it_can_again(stage: Stage) -> None:
    """Failed with the reason, nothing while that lasts, then mended."""
    tab = stage.follow()
    await stage.painted()
    assert [name for name, _ in heard(tab)] == ["panel", "panel"]

    answer.append(raising(DatabaseUnavailable("the database is away")))
    await stage.painted()
    assert tab.wake.is_set()
    assert heard(tab) == [("failed", {"reason": "the database is away"})]
    await stage.painted()
    assert heard(tab) == []

    answer.append(plain)
    await stage.painted()
    assert [name for name, _ in heard(tab)] == ["seen", "seen", "mended"]


async def test_a_painting_that_was_told_to_end_and_did_not_hear_it_ends_after_its_turn(stage: Stage) -> None:
    """A wait for the database can end at that very instant, and lose it.

    Seen failing with a ValueError, which nobody retrieved: it looked for the client among no tabs.
    """
    begun = asyncio.Event()

    async def deaf() -> Loaded:
        begun.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return loaded(**WORDS)

    answer.append(lambda: [Panel("one", "One", "ui_words.html", deaf)])
    tab = stage.follow()
    async with asyncio.timeout(5):
        await begun.wait()
        tab.close()
        await stage.rests.begun.wait()
        stage.rests.resting[0].set_result(None)
        await tab.painting._task
    assert stage.places.is_idle


async def test_a_tab_that_comes_while_the_page_fails_is_told(stage: Stage) -> None:
    """It shares the painting of the others, and has heard nothing yet."""
    stage.follow()
    answer.append(raising(DatabaseUnavailable("away")))
    await stage.painted()
    assert heard(stage.follow()) == [("failed", {"reason": "away"})]


@pytest.mark.parametrize(
    ("page", "told"),
    [
        (raising(JobNotFound("job 64: no such job")), {"reason": "job 64: no such job", "to": None}),
        (raising(not_found()), {"reason": "There is nothing here, or it is not yours to see.", "to": None}),
        (lambda: Elsewhere("/dead/64"), {"reason": "It is at another address now.", "to": "/dead/64"}),
    ],
    ids=["not found", "problem 404", "elsewhere"],
)
async def test_a_page_that_is_not_there_any_more_is_gone(stage: Stage, page: Any, told: object) -> None:
    """With its new address, if it has one."""
    tab = stage.follow()
    answer.append(page)
    await stage.painted()
    assert heard(tab) == [("gone", told)]


async def test_a_fault_of_the_page_is_told_and_the_painting_goes_on(stage: Stage) -> None:
    """Any exception: without a catch for it the task ended, and beats said that all was well."""
    tab = stage.follow()
    answer.append(raising(ZeroDivisionError("a fault")))
    await stage.painted()
    assert heard(tab) == [("failed", {"reason": "it has a fault; the server's log says which."})]
    answer.append(plain)
    await stage.painted()
    assert ("mended", {}) in heard(tab)


async def test_who_observes_is_not_told_the_text_of_an_error(stage: Stage) -> None:
    """It may hold the statement; who operates is told."""
    tabs = {scope: stage.follow(scope=scope) for scope in ("observe", "operate")}
    answer.append(raising(DatabaseUnavailable(STATEMENT)))
    await stage.painted()
    told = {scope: orjson.dumps(heard(tab)).decode() for scope, tab in tabs.items()}
    assert STATEMENT in told["operate"]
    assert "failed" in told["observe"]
    assert STATEMENT not in told["observe"]


async def test_panels_that_a_tab_shows_are_not_sent_again(stage: Stage) -> None:
    """Only their instants, and only one query for both tabs; another browser's forms have other tokens."""
    first = stage.follow()
    await stage.painted()
    sent = [document["html"] for _, document in heard(first)]
    hashes = [re.findall(r'data-hash="([0-9a-f]{16})"', html)[0] for html in sent]
    before = len(looks)

    assert [name for name, _ in heard(stage.follow(has=",".join(hashes)))] == ["seen", "seen"]
    assert [name for name, _ in heard(stage.follow(has=hashes[1]))] == ["panel", "seen"]
    assert [name for name, _ in heard(stage.follow(has="0" * 16))] == ["panel", "panel"]
    assert len(looks) == before


async def test_a_page_that_has_other_panels_says_which(stage: Stage) -> None:
    """One that is not painted any more must not stay on the screen as if it were; a new one has a place."""
    tab = stage.follow()
    await stage.painted()
    assert heard(tab, order=True)[0] == ("order", {"ids": ["one", "two"]})
    await stage.painted()
    assert [name for name, _ in heard(tab, order=True)] == ["seen", "seen"]

    answer.append(lambda: [replace(plain()[0], id="three"), plain()[1]])
    await stage.painted()
    told = heard(tab, order=True)
    assert told[0] == ("order", {"ids": ["three", "two"]})
    assert [(name, document["id"]) for name, document in told[1:]] == [("panel", "three"), ("seen", "two")]


async def test_a_tab_that_asks_while_the_page_is_painted_is_told_nothing_of_half_of_it(stage: Stage) -> None:
    """Half of the panels would be an order in which the others are gone."""
    reading, read = asyncio.Event(), asyncio.Event()

    async def slow() -> Loaded:
        reading.set()
        await read.wait()
        return loaded(**WORDS)

    answer.append(lambda: [plain()[0], replace(plain()[1], load=slow)])
    tab = stage.follow()
    async with asyncio.timeout(5):
        await reading.wait()
    assert heard(tab, order=True) == []
    read.set()
    await stage.painted()
    assert heard(tab, order=True)[0] == ("order", {"ids": ["one", "two"]})


async def test_a_hash_is_of_one_browser(stage: Stage) -> None:
    """A panel with forms of another token is another one: its forms would be refused."""
    tab = stage.follow()
    await stage.painted()
    tab.next()
    painted = tab.painting.panels["one"]
    assert painted.hash("token") == painted.hash("another")  # it has no form

    async def load() -> Loaded:
        at = [(0.0, "none"), (1.0, "none")]
        return loaded(steps=[("a", None, "none", ""), ("b", None, "none", "")], bars=at, points=POINTS, hostile="")

    answer.append(lambda: [Panel("one", "One", "ui_components.html", load)])
    await stage.painted()
    painted = tab.painting.panels["one"]
    assert painted.hash("token") != painted.hash("another")


POINTS = {"at": [1.0, 2.0], "lines": {"one": [1.0, 2.0], "other": [2.0, 1.0]}}


async def test_a_client_follows_so_many_different_pages(stage: Stage) -> None:
    """429 with the number beyond; the same page again is no other one, another client has its own, a closed tab makes room."""
    tabs = [stage.follow(f"/page/{n}") for n in range(6)]
    stage.follow("/page/0")
    with pytest.raises(Problem) as refused:
        stage.follow("/page/6")
    assert (refused.value.status, refused.value.word) == (429, "pages")
    assert "You follow 6 different pages" in str(refused.value)
    assert "Retry-After" in refused.value.headers
    stage.follow("/page/6", user="ben")

    tabs[5].close()
    stage.follow("/page/6")


async def test_one_stream_follows_several_pages(stage: Stage) -> None:
    """Each event names its page; one wake is for all; the end of the stream lets go of every page."""
    stream = SharedStream.of(["/page/a", "/page/b"], lambda _, address: stage.follow(address))
    await stage.painted()
    assert [(name, document["page"]) for name, document in events(stream)] == [
        (name, page) for page in (0, 1) for name in ("order", "panel", "panel")
    ]
    stream.wake.clear()
    await stage.painted()
    assert stream.wake.is_set()
    assert {(name, document["page"]) for name, document in events(stream)} == {("seen", 0), ("seen", 1)}
    stream.close()
    assert not stage.paintings._open


async def test_a_page_that_is_refused_leaves_the_others(stage: Stage) -> None:
    """It is told once, as an answer would tell it; alone it is that answer."""
    stream = SharedStream.of(["/question", "/page/b"], lambda _, address: stage.follow(address))
    await stage.painted()
    assert events(stream)[0] == (
        "refused",
        {"page": 0, "status": 400, "detail": "This page does not change by itself.", "seconds": 0.0},
    )
    await stage.painted()
    assert {name for name, _ in events(stream)} == {"seen"}
    stream.close()
    with pytest.raises(Problem):
        SharedStream.of(["/question"], lambda _, address: stage.follow(address))


async def test_the_slow_pages_of_one_client_leave_the_pages_of_many_others(stage: Stage) -> None:
    """One of theirs at a time, two in all; every page of the others is painted while theirs stand still.

    Seen failing with two places for a client: nobody else's page came.
    """
    go_on, painting = asyncio.Event(), Counter[str]()
    most: Counter[str] = Counter()

    def page(whose: str, wait: asyncio.Event | None) -> Sequence[Panel]:
        async def load() -> Loaded:
            painting.update([whose, "all"])
            for name in (whose, "all"):
                most[name] = max(most[name], painting[name])
            await (wait.wait() if wait else asyncio.sleep(0))
            painting.subtract([whose, "all"])
            return loaded(**WORDS)

        return [replace(plain()[0], load=load)]

    answer.append(lambda: page("ann", go_on) if looks[-1].startswith("/page/slow") else page("others", None))
    slow = [stage.follow(f"/page/slow{n}") for n in range(6)]
    others = [stage.follow(f"/page/{n}", user=f"user{n % 10}") for n in range(20)]
    async with asyncio.timeout(5):
        while len(stage.rests.resting) < len(others):
            stage.rests.begun.clear()
            await stage.rests.begun.wait()
    assert all(tab.painting.panels for tab in others)
    assert not any(tab.painting.panels for tab in slow)
    assert most == {"ann": 1, "others": 1, "all": 2}
    go_on.set()
    async with asyncio.timeout(5):
        while len(stage.rests.resting) < len(others) + len(slow):
            stage.rests.begun.clear()
            await stage.rests.begun.wait()
    assert most["ann"] == 1
    assert stage.places.is_idle


async def test_the_last_tab_ends_the_painting(stage: Stage) -> None:
    """Not the first of two; and to close twice is no harm."""
    tabs = [stage.follow(), stage.follow(user="ben")]
    painting = tabs[0].painting
    assert tabs[1].painting is painting
    tabs[0].close()
    tabs[0].close()
    await stage.painted()
    tabs[1].close()
    await asyncio.gather(painting._task, return_exceptions=True)
    assert painting._task.cancelled()


def test_a_dear_page_rests_longer() -> None:
    """Ten times as long as it took, and two seconds at least."""
    assert [rest_seconds(took) for took in (0.0, 0.1, 1.5)] == [PAINT_SECONDS, PAINT_SECONDS, 1.5 * PAINT_RESTS]


async def test_a_painting_rests_as_it_should(stage: Stage) -> None:
    """A page that is read at once rests for the shortest time."""
    stage.follow()
    await stage.painted()
    assert stage.rests.seconds[0] >= PAINT_SECONDS


async def test_a_question_is_not_live(stage: Stage) -> None:
    """Its words must not change while it is answered."""
    with pytest.raises(Problem) as refused:
        stage.follow("/question")
    assert (refused.value.status, refused.value.word) == (400, "not-live")
    assert looks == []
