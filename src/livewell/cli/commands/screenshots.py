"""`livewell screenshots DIR`: the pictures of the documentation, taken anew from a running demo."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click

from livewell.cli.command import command
from livewell.cli.output import AS_JSON, print_json
from livewell.cli.terminal import echo
from livewell.errors import ConfigurationError

_LINK = re.compile(rb"https?://\S+/login#\S+")
_START_SECONDS, _END_SECONDS = 60.0, 30.0
_PAINT_MS = 800
_SIZES = {"wide": (1600, 1000, "light"), "dark": (1600, 1000, "dark"), "phone": (390, 844, "light")}


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
@AS_JSON
def screenshots(*, folder: Path, seconds: float, as_json: bool) -> None:
    """Take a picture of every page, from a demo with faults.

    Needs Chromium and the package playwright (pip install 'livewell[dev]'). Files are named
    PAGE-wide.png, PAGE-dark.png and PAGE-phone.png.
    """
    folder.mkdir(parents=True, exist_ok=True)
    taken = asyncio.run(_take(folder, seconds, _chromium()))
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


async def _take(folder: Path, seconds: float, chromium: str) -> list[str]:
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
        for size, (width, height, scheme) in _SIZES.items():
            await page.set_viewport_size({"width": width, "height": height})
            await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # one of the two
            for path in _pages():
                await page.goto(base + path)
                await page.wait_for_timeout(_PAINT_MS)
                taken.append(f"{path.strip('/') or 'overview'}-{size}.png")
                await page.screenshot(path=folder / taken[-1], full_page=True)
        await browser.close()
    return taken


def _pages() -> list[str]:
    """Every page that has a word in the navigation."""
    from livewell.capability import capabilities  # noqa: PLC0415 - heavy

    views = [view.path for one in capabilities() for view in one.views if view.nav]
    return [*views, *(page.path for one in capabilities() for page in one.pages)]


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
            async with asyncio.timeout(_START_SECONDS):
                link = await _find_link(process.stdout)
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
