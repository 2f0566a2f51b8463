"""`livewell screenshots DIR`: the pictures of the documentation, taken anew from a running demo."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from livewell.cli.command import command
from livewell.cli.output import AS_JSON, print_json
from livewell.cli.terminal import echo
from livewell.errors import ConfigurationError

if TYPE_CHECKING:
    from playwright.async_api import Page

_LINK = re.compile(rb"https?://\S+/login#\S+")
_START_SECONDS, _END_SECONDS = 120.0, 30.0
_PAINT_MS = 800
_SIZES = {"wide": (1600, 1000), "phone": (390, 844)}
_SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
_LOOKS = tuple(f"{size}-{scheme}" for size in _SIZES for scheme in _SCHEMES)
_PART = re.compile(r"\{[a-z]+(:path)?\}")
_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@command("screenshots")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--after",
    "seconds",
    type=click.FloatRange(0, 3600),
    default=45.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the demo runs before the first picture.",
)
@click.option("--page", "only", multiple=True, metavar="ADDRESS", help="Only this page, such as /work. Repeatable.")
@click.option("--look", "looks", multiple=True, type=click.Choice(_LOOKS), help="Only this size and theme. Repeatable.")
@AS_JSON
def screenshots(*, folder: Path, seconds: float, only: tuple[str, ...], looks: tuple[str, ...], as_json: bool) -> None:
    """Take a picture of every page, from a demo with faults.

    Every page of the navigation, and one page of each kind that they lead to: a type, a key, a job.
    Needs Chromium and the package playwright (pip install 'livewell[dev]'). Files are named
    PAGE-wide-light.png, PAGE-wide-dark.png, PAGE-phone-light.png and PAGE-phone-dark.png.
    """
    folder.mkdir(parents=True, exist_ok=True)
    taken = asyncio.run(_take(folder, seconds, _chromium(), only, looks or _LOOKS))
    if as_json:
        print_json({"folder": str(folder), "pictures": taken})
    else:
        echo(f"{len(taken)} pictures in {folder}")


def _chromium() -> str:
    found = os.environ.get("LIVEWELL_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        raise ConfigurationError(
            "there is no Chromium on the PATH. Install it, or name its program in LIVEWELL_TEST_CHROMIUM"
        )
    return found


async def _take(folder: Path, seconds: float, chromium: str, only: Sequence[str], looks: Collection[str]) -> list[str]:
    try:
        from playwright.async_api import async_playwright  # noqa: PLC0415 - heavy, and not always there
    except ImportError:
        raise ConfigurationError(
            "pictures need the package playwright. Install it with: pip install 'livewell[dev]'"
        ) from None
    async with _demo() as link, async_playwright() as playwright:
        await asyncio.sleep(seconds)
        browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = await browser.new_context()
        page = await context.new_page()
        await page.goto(link)
        await page.get_by_role("button", name="Log in").click()
        base = link.partition("/login#")[0]
        await page.wait_for_url(f"{base}/")
        taken: list[str] = []
        pages = {_name(path): path for path in only} or await _pages(page, base)
        for size, (width, height) in _SIZES.items():
            await page.set_viewport_size({"width": width, "height": height})
            for scheme in _SCHEMES:
                await page.emulate_media(color_scheme=scheme)
                for name, path in pages.items() if f"{size}-{scheme}" in looks else ():
                    answer = await page.goto(base + path)
                    if answer is None or not answer.ok:
                        raise ConfigurationError(f"there is no page {path!r}. Pages are addresses such as / and /work")
                    await page.wait_for_timeout(_PAINT_MS)
                    taken.append(f"{name}-{size}-{scheme}.png")
                    await page.screenshot(path=folder / taken[-1], full_page=True)
        await browser.close()
    return taken


async def _pages(page: Page, base: str) -> dict[str, str]:
    """Name and address of every page of the navigation, then of one page of each kind they lead to."""
    from livewell.capability import capabilities  # noqa: PLC0415 - heavy

    views = [view for one in capabilities() for view in one.views]
    known = [view.path for view in views if view.nav] + [one.path for each in capabilities() for one in each.pages]
    found = {_name(path): path for path in known}
    wanted = {view.path: _pattern(view.path) for view in views if view.path not in known}
    waiting = [*known]
    while waiting and wanted:
        await page.goto(base + waiting.pop(0))
        links = await page.eval_on_selector_all("main a[href]", "all => all.map((one) => one.getAttribute('href'))")
        for link in links:
            kind = next((path for path, regex in wanted.items() if regex.fullmatch(link.partition("?")[0])), None)
            if kind is not None:
                del wanted[kind]
                found[_name(kind)] = link
                waiting.append(link)
    return found


def _pattern(path: str) -> re.Pattern[str]:
    """Of the addresses of a view: /types/{name}/{key:path}."""
    return re.compile(_PART.sub(lambda part: ".+" if part[1] else "[^/]+", path))


def _name(path: str) -> str:
    """Of a file: what the page is, not what it is about."""
    return _NAME.sub("-", path).strip("-") or "overview"


@asynccontextmanager
async def _demo() -> AsyncIterator[str]:
    """A demo of its own, which ends with the block; yields a link that logs in."""
    with tempfile.TemporaryDirectory(prefix="livewell-screenshots-") as home:
        Path(home).chmod(0o755)  # noqa: ASYNC240 - once, before anything runs; as root, Postgres runs as another user
        environment = {**os.environ, "LIVEWELL_DATA_DIR": str(Path(home) / "data")}
        options: dict[str, Any] = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.STDOUT}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "livewell.cli", "demo", "--faults", "--print-link", env=environment, **options
        )
        assert process.stdout is not None  # noqa: S101 - asked for above
        draining: asyncio.Task[bytes] | None = None
        try:
            try:
                async with asyncio.timeout(_START_SECONDS):
                    link = await _find_link(process.stdout)
            except TimeoutError:
                raise ConfigurationError(f"the demo printed no login link within {_START_SECONDS:.0f} s") from None
            draining = asyncio.create_task(process.stdout.read())  # what nobody reads would stop it
            yield link
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGINT)
            await asyncio.wait_for(process.wait(), _END_SECONDS)
            if draining is not None:
                draining.cancel()


async def _find_link(output: asyncio.StreamReader) -> str:
    last = b""
    while line := await output.readline():
        found = _LINK.search(line)
        if found is not None:
            return found[0].decode()
        last = line.strip() or last
    raise ConfigurationError(f"the demo ended before it printed a login link: {last.decode(errors='replace')[:200]}")
