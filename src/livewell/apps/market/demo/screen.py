"""What a person sees: a live table in a terminal, a line every two seconds elsewhere.

News of deaths and recoveries stand below the table, or between the lines.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from livewell.apps.kit.terminal import fit, print_styled
from livewell.apps.market.demo.figures import Figures, Row, quantile

_LINE_SECONDS = 2.0
_NEWS_MAX = 6
_REASONS_MAX = 6
_RECOVERED = 0.95
_STEADY_SECONDS = 1.5
_UNHURT_SECONDS = 20.0
_NO_LINK = (
    "no login link here, for this may be a log; livewell demo --print-link prints one, livewell keys login makes "
    "another"
)
VERDICTS = {
    "fresh": "green",
    "unverifiable": "green",
    "lagging": "yellow",
    "stale": "yellow",
    "missing": "dim",
    "failing": "red",
}


@dataclass(slots=True)
class Scene:
    """All that is shown at one instant."""

    seconds: float = 0.0
    step: str = ""  # while it starts
    viewers: int = 0
    came: int = 0
    link: str = ""  # logs a browser in, once; or the address alone, where nobody would read the link
    streams: int = 0
    pushes: int = 0
    figures: Figures | None = None
    away: str | None = None  # why there are no new figures
    calls_allowed: int = 0
    shown: Sequence[str] = ()
    processes: dict[str, int | None] = field(default_factory=dict)
    hint: str = ""
    faults: int | None = None


@dataclass(slots=True)
class _Death:
    """Of a process, and what it did to the share of fresh rows."""

    at: float
    fell: bool = False
    well_since: float | None = None


class Screen:
    """Shows scenes, and tells news."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._news: deque[tuple[float, str]] = deque(maxlen=_NEWS_MAX)
        self._began = time.monotonic()
        self._lined = 0.0
        self._step = ""
        self._hint = ""
        self._link = ""
        self._death: _Death | None = None
        fit(console, width=120)

    @contextmanager
    def open(self) -> Iterator[None]:
        """The table stays where it was when the demo ends."""
        self._began = time.monotonic()
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, refresh_per_second=4, transient=False) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def say(self, text: str) -> None:
        """Something happened."""
        seconds = time.monotonic() - self._began
        self._news.append((seconds, text))
        if "is gone" in text:
            self._death = _Death(time.monotonic())
        if self._live is None:
            self._print(text)

    def show(self, scene: Scene) -> None:
        """Draw it."""
        self._notice_recovery(scene)
        if self._live is not None:
            self._live.update(_table(scene, list(self._news)))
        elif scene.link != self._link:
            self._link = scene.link
            self._print(f"open {scene.link}  ({'logs a browser in, once' if '#' in scene.link else _NO_LINK})")
        elif scene.step != self._step:
            self._step = scene.step
            if scene.step:
                self._print(scene.step)
        elif scene.hint not in ("", self._hint):
            for line in scene.hint.splitlines()[: 1 if self._hint else None]:
                self._print(line)
            self._hint = scene.hint
        elif scene.figures is not None and scene.figures.rows and time.monotonic() - self._lined >= _LINE_SECONDS:
            self._lined = time.monotonic()
            self._print(_line(scene))

    def end(self, lines: Sequence[tuple[str, str]]) -> None:
        """The last words: text and style."""
        print_styled(self._console, lines)

    def _print(self, text: str) -> None:
        self._console.print(Text(f"{time.monotonic() - self._began:6.1f} s  {text}"))

    def _notice_recovery(self, scene: Scene) -> None:
        """After a death, say when the share of fresh rows is back, or that it never fell."""
        death, figures = self._death, scene.figures
        if death is None or figures is None:
            return
        share = 0.0 if scene.away is not None else figures.share_fresh
        if share >= _RECOVERED:
            death.well_since = death.well_since or time.monotonic()
        else:
            death.well_since = None
            death.fell = True
        now = time.monotonic()
        if death.fell and death.well_since is not None and now - death.well_since >= _STEADY_SECONDS:
            self._death = None
            self.say(
                f"{share:.0%} of the watched rows are fresh again, {death.well_since - death.at:.1f} s after the death"
            )
        elif not death.fell and now - death.at >= _UNHURT_SECONDS:
            self._death = None
            self.say(f"the share of fresh rows never fell below {_RECOVERED:.0%}")


def _line(scene: Scene) -> str:
    figures = scene.figures
    if figures is None:
        return scene.step
    ages = figures.quote_ages()
    parts = [
        f"{figures.share_fresh:6.1%} of {len(figures.rows)} watched rows fresh",
        f"{scene.viewers} viewers",
        f"age p50 {_span(quantile(ages, 0.5))} p99 {_span(quantile(ages, 0.99))}",
        f"calls {figures.calls_last_minute} of {scene.calls_allowed}/min",
        f"{figures.refreshes:,} refreshes",
        f"{scene.pushes:,} pushed",
        _size(figures.wire_bytes),
        f"{sum(figures.rejected.values())} rejected",
    ]
    return scene.away or "  ".join(parts)


def _table(scene: Scene, news: Sequence[tuple[float, str]]) -> RenderableType:
    parts: list[RenderableType] = [_head(scene)]
    if scene.link:
        parts += [Text(f"open {scene.link}", style=f"link {scene.link}", no_wrap=True, overflow="ignore"), Text("")]
    if scene.figures is not None:
        parts += [_numbers(scene, scene.figures), Text(""), _symbols(scene, scene.figures)]
    if scene.hint:
        parts += [Text(""), Text(scene.hint, style="dim")]
    if news:
        parts += [Text(""), *(Text(f"{seconds:6.1f} s  {text}", style=_news_style(text)) for seconds, text in news)]
    return Group(*parts)


def _head(scene: Scene) -> Text:
    head = Text("Livewell, market demo", style="bold")
    head.append(f"   {scene.seconds:.0f} s", style="dim")
    if scene.step:
        head.append(f"   {scene.step}", style="cyan")
    if scene.away:
        head.append(f"   {scene.away}", style="red")
    return head


def _numbers(scene: Scene, figures: Figures) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column()
    ages = figures.quote_ages()
    share = Text(
        f"{figures.share_fresh:.1%}", style="bold green" if figures.share_fresh >= _RECOVERED else "bold yellow"
    )
    share.append(
        f" of {len(figures.rows)} watched rows, by {scene.viewers} viewers ({scene.came:,} came so far)",
        style="not bold default",
    )
    grid.add_row("fresh", share)
    verdicts = Text()
    for verdict, style in VERDICTS.items():
        if figures.verdicts[verdict]:
            verdicts.append(f"{verdict} {figures.verdicts[verdict]}   ", style=style)
    grid.add_row("verdicts", verdicts)
    grid.add_row("age of quotes", f"p50 {_span(quantile(ages, 0.5))}, p99 {_span(quantile(ages, 0.99))}")
    grid.add_row(
        "calls", f"{figures.calls_last_minute} of {scene.calls_allowed} in the last minute, counted by the upstream"
    )
    grid.add_row("refreshes", f"{figures.refreshes:,}, {_size(figures.wire_bytes)}")
    grid.add_row("pushed", f"{scene.pushes:,} readings to {scene.streams} open streams")
    grid.add_row("rejected", _reasons(figures))
    if scene.faults is not None:
        grid.add_row("faults", f"{scene.faults:,} on purpose so far")
    return grid


def _reasons(figures: Figures) -> str:
    rejected = figures.rejected
    told = [f"{reason} {n}" for reason, n in list(rejected.items())[:_REASONS_MAX]]
    more = len(rejected) - len(told)
    return "none" if not told else ", ".join(told) + (f", and {more} more reasons" if more > 0 else "")


def _symbols(scene: Scene, figures: Figures) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading, right in (
        ("symbol", False),
        ("price", True),
        ("today", True),
        ("verdict", False),
        ("age", True),
        ("viewers", True),
        ("why", False),
    ):
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    rows = {row.key: row for row in figures.rows if row.type == "quote"}
    for symbol in scene.shown:
        row = rows.get(symbol)
        if row is not None:
            table.add_row(symbol, *_cells(row, figures))
    return table


def _cells(row: Row, figures: Figures) -> list[Text]:
    price, change = figures.prices.get(row.key, (None, None))
    percent = float(str(change)) if change is not None else None
    return [
        Text("" if price is None else f"{float(str(price)):,.2f}"),
        Text(
            "" if percent is None else f"{percent:+.2f} %",
            style="" if not percent else "green" if percent > 0 else "red",
        ),
        Text(row.verdict, style=VERDICTS.get(row.verdict, "")),
        Text(_span(row.age_seconds)),
        Text(str(row.viewers)),
        Text("" if row.verdict == "fresh" else row.reason or "", style="dim"),
    ]


def _news_style(text: str) -> str:
    return "red" if "is gone" in text else "green" if "fresh" in text else ""


def _span(seconds: float | None) -> str:
    if seconds is None:
        return "none"
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.0f} min"


def _size(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB" if count >= 100_000 else f"{count / 1_000:.0f} kB"
