"""One form of the dashboard, sent with the keyboard, and what it must leave behind.

its page ──link, question, fields──▶ the form ──Enter──▶ words, rows, one line in the audit
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Page, expect
from starlette.routing import compile_path

from livewell.capability import capabilities
from tests.browser.keyboard import fill, follow, to_button, unfold
from tests.browser.site import Hand

ACTS = [act.path for one in capabilities() for act in one.acts]
# Pages do not follow themselves: what is on them is what the server said at first.
UNFOLLOWED = "Object.defineProperty(document, 'hidden', { get: () => true })"
_LINES = """
SELECT id, actor, origin, concat_ws(' ', action, subject) FROM livewell.audit WHERE id > %s ORDER BY id
"""


def act_at(to: str) -> str | None:
    """The act of this address; the first that matches, as in the server."""
    return next((path for path in ACTS if compile_path(path)[0].fullmatch(to)), None)


@dataclass(frozen=True, slots=True)
class ActCase:
    """A form, and what it must leave behind.

    to      where the form goes
    at      the page that it is on
    press   the name of its button; if that is behind a question, this name with an ellipsis opens it
    says    what the page says afterwards; where: in which element
    audit   how each line begins that it leaves in the audit: action and subject
    query   looks at what it changed
    found   what that query answers afterwards. Before, it must answer something else
    given   a statement that comes first
    opens   what opens to show the form, if it is closed at first
    link    a link of that page that leads to the form
    typed   what is typed into the fields of the form, by their names for people
    then    a statement for what the workers do after it
    """

    to: str
    at: str
    press: str
    says: str
    audit: tuple[str, ...]
    query: str
    found: object
    where: str = ".said"
    given: str = ""
    opens: str = ""
    link: str = ""
    typed: Mapping[str, str] = field(default_factory=dict)
    then: str = ""

    def __str__(self) -> str:
        return f"{self.press}, {self.to} from {self.at}"


async def reach(page: Page, base: str, case: ActCase) -> None:
    """Find the form as a person without a mouse does, and fill it in; its button has the focus."""
    await page.goto(base + case.at)
    if case.link:
        await follow(page, case.link)
    if case.opens:
        await unfold(page, case.opens)
    for name, text in case.typed.items():
        await fill(page, name, text)
    await to_button(page, case.press)


async def send(page: Page, base: str, case: ActCase) -> None:
    """Press Enter, and read what is said."""
    await reach(page, base, case)
    async with page.expect_request(lambda one: one.method == "POST") as sent:
        await page.keyboard.press("Enter")
    assert urlsplit((await sent.value).url).path == case.to
    await expect(page.locator(case.where).first).to_contain_text(case.says)


def look(hand: Hand, query: str) -> Any:
    """The one cell that a query answers."""
    return hand.rows(query)[0][0]


def newest_line(hand: Hand) -> int:
    """After which the lines of an act come."""
    return int(look(hand, "SELECT coalesce(max(id), 0) FROM livewell.audit"))


def wrong_lines(hand: Hand, after: int, actor: str, expected: tuple[str, ...]) -> list[str]:
    """Lines of the audit that are not the expected ones, or are not this browser's."""
    lines = hand.rows(_LINES, after)
    said = [one for *_, one in lines]
    wrong = [] if len(said) == len(expected) else [f"lines of the audit: {said}, not {list(expected)}"]
    wrong += [
        f"a line of the audit says {a}, not {b}" for a, b in zip(said, expected, strict=False) if not a.startswith(b)
    ]
    begun = [(who, origin) for _, who, origin, action in lines if not action.startswith("acts.end ")]  # by a worker
    return wrong + [
        f"{who} from {origin} did it" for who, origin in begun if (who, origin) != (actor, "page 127.0.0.1")
    ]


async def login_of(page: Page) -> str:
    """The login of this browser, as its button for leaving names it."""
    title = await page.get_by_role("button", name="Log out", exact=True).get_attribute("title")
    assert title is not None
    return title.removeprefix("End the login ").removesuffix(" of this browser")


def paused(table: str, name: str) -> str:
    """Whether somebody paused it."""
    return f"SELECT paused_at IS NOT NULL FROM livewell.{table} WHERE name = '{name}'"


def number(table: str, condition: str) -> str:
    """How many rows are so."""
    return f"SELECT count(*) FROM livewell.{table} WHERE {condition}"
