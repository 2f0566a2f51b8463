"""What a template sees: the document as headings, entries and lines, in the order of reading.

    Resume ──▶ head · sections: title, entries | rows | quotes ──JSON──▶ template

All templates draw the same view, so all of them print the same text in the same order, and a test
can say what that text is. Strings stay strings: a template shows them and never evaluates them.

A word that is longer than a line could be is cut by MARK, where a template may break the line; the
mark itself is no character (and cannot be in a document: the schema refuses it).
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final

from livewell.apps.resumes.words import Words, date_words, words_of

MARK: Final = "\ufdd0"
# Not of Chinese, Japanese or Korean, whose lines may end anywhere.
_LONG_WORD = re.compile(r"[^\s\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef]{33,}")
_PIECE_MAX = 10
_ORDER: Final = (
    "summary", "work", "projects", "education", "skills", "certificates", "awards", "publications",
    "volunteer", "languages", "interests", "references",
)  # fmt: skip
_SCHEME = re.compile(r"^https?://(?:www\.)?", re.IGNORECASE)


def view_of(resume: dict[str, Any]) -> dict[str, Any]:
    """Head and sections. Empty fields, entries and sections are left out."""
    words = words_of(resume.get("language") or "en")
    basics = resume.get("basics") or {}
    sections = []
    for name in _order(resume):
        section = _section(name, resume, words)
        if section:
            title = (resume.get("titles") or {}).get(name) or words.titles[name]
            sections.append({"name": name, "title": _cut(title), **section})
    return {
        "name": _cut(basics.get("name") or ""),
        "label": _cut(basics.get("label") or ""),
        "contact": [_item(*part) for part in _contact(basics)],
        "sections": sections,
    }


def _order(resume: dict[str, Any]) -> list[str]:
    first = [name for name in resume.get("sections") or [] if name in _ORDER]
    hidden = set(resume.get("hidden") or [])
    return [name for name in dict.fromkeys([*first, *_ORDER]) if name not in hidden]


def _contact(basics: dict[str, Any]) -> list[tuple[str, str]]:
    """What is shown, and where it leads to."""
    found = []
    if email := basics.get("email"):
        found.append((email, f"mailto:{email}"))
    if phone := basics.get("phone"):
        digits = re.sub(r"[^0-9+]", "", phone)
        found.append((phone, f"tel:{digits}" if digits else ""))
    place = basics.get("location") or {}
    city = " ".join(part for part in (place.get("postalCode"), place.get("city")) if part)
    where = [part for part in (place.get("address"), city, place.get("region"), place.get("countryCode")) if part]
    if where:
        found.append((", ".join(where), ""))
    if url := basics.get("url"):
        found.append((_shown(url), url))
    for profile in basics.get("profiles") or []:
        url = profile.get("url") or ""
        shown = ": ".join(part for part in (profile.get("network"), profile.get("username")) if part)
        if shown or url:
            found.append((shown or _shown(url), url))
    return found


def _section(name: str, resume: dict[str, Any], words: Words) -> dict[str, Any]:
    if name == "summary":
        text = _paragraphs((resume.get("basics") or {}).get("summary"))
        return {"kind": "text", "paragraphs": text} if text else {}
    entries = [shown for entry in resume.get(name) or [] if (shown := _DRAWN[name](entry, words))]
    return {"kind": _KINDS.get(name, "entries"), "entries": entries} if entries else {}


def _entry(
    heading: str | None,
    *others: str | None,
    dates: str = "",
    url: str | None = "",
    text: tuple[str | None, ...] = (),
    points: list[str] | None = None,
    tags: list[str] | None = None,
) -> dict[str, Any]:
    """One entry: the first name that is there is its heading, the others stand beside it."""
    names = [name for name in (heading, *others) if name]
    shown = {
        "heading": _cut(names[0]) if names else "",
        "beside": [_cut(name) for name in names[1:]],
        "dates": dates,
        "link": _item(_shown(url), url) if url else None,
        "paragraphs": [part for paragraph in text for part in _paragraphs(paragraph)],
        "points": [_cut(" ".join(point.split("\n"))) for point in points or [] if point],
        "tags": [_cut(tag) for tag in tags or [] if tag],
    }
    return shown if any(shown.values()) else {}


def _work(entry: dict[str, Any], words: Words) -> dict[str, Any]:
    return _entry(
        entry.get("position"), entry.get("name"), entry.get("location"),
        dates=_span(entry, words), url=entry.get("url"),
        text=(entry.get("description"), entry.get("summary")), points=entry.get("highlights"),
    )  # fmt: skip


def _volunteer(entry: dict[str, Any], words: Words) -> dict[str, Any]:
    return _entry(
        entry.get("position"), entry.get("organization"),
        dates=_span(entry, words), url=entry.get("url"),
        text=(entry.get("summary"),), points=entry.get("highlights"),
    )  # fmt: skip


def _project(entry: dict[str, Any], words: Words) -> dict[str, Any]:
    roles = ", ".join(role for role in entry.get("roles") or [] if role)
    return _entry(
        entry.get("name"), roles, entry.get("entity"), entry.get("type"),
        dates=_span(entry, words), url=entry.get("url"),
        text=(entry.get("description"),), points=entry.get("highlights"), tags=entry.get("keywords"),
    )  # fmt: skip


def _education(entry: dict[str, Any], words: Words) -> dict[str, Any]:
    studied = ", ".join(part for part in (entry.get("studyType"), entry.get("area")) if part)
    return _entry(
        studied, entry.get("institution"), entry.get("score"),
        dates=_span(entry, words), url=entry.get("url"), points=entry.get("courses"),
    )  # fmt: skip


def _award(entry: dict[str, Any], words: Words) -> dict[str, Any]:
    date = date_words(entry.get("date") or "", words)
    return _entry(entry.get("title"), entry.get("awarder"), dates=date, text=(entry.get("summary"),))


def _certificate(entry: dict[str, Any], words: Words) -> dict[str, Any]:
    date = date_words(entry.get("date") or "", words)
    return _entry(entry.get("name"), entry.get("issuer"), dates=date, url=entry.get("url"))


def _publication(entry: dict[str, Any], words: Words) -> dict[str, Any]:
    date = date_words(entry.get("releaseDate") or "", words)
    return _entry(
        entry.get("name"), entry.get("publisher"), dates=date, url=entry.get("url"), text=(entry.get("summary"),)
    )


def _row(name: str | None, level: str | None, keywords: list[str] | None) -> dict[str, Any]:
    """A name in bold, and what follows it."""
    words = [_cut(word) for word in keywords or [] if word]
    row = {"name": _cut(name or ""), "level": _cut(level or ""), "words": words}
    return row if any(row.values()) else {}


def _skill(entry: dict[str, Any], _: Words) -> dict[str, Any]:
    return _row(entry.get("name"), entry.get("level"), entry.get("keywords"))


def _spoken(entry: dict[str, Any], _: Words) -> dict[str, Any]:
    return _row(entry.get("language"), entry.get("fluency"), [])


def _interest(entry: dict[str, Any], _: Words) -> dict[str, Any]:
    return _row(entry.get("name"), "", entry.get("keywords"))


def _reference(entry: dict[str, Any], _: Words) -> dict[str, Any]:
    quote = {"paragraphs": _paragraphs(entry.get("reference")), "name": _cut(entry.get("name") or "")}
    return quote if any(quote.values()) else {}


_DRAWN: Final = {
    "work": _work, "projects": _project, "education": _education, "skills": _skill,
    "certificates": _certificate, "awards": _award, "publications": _publication, "volunteer": _volunteer,
    "languages": _spoken, "interests": _interest, "references": _reference,
}  # fmt: skip
_KINDS: Final = {"skills": "rows", "languages": "rows", "interests": "rows", "references": "quotes"}


def _span(entry: dict[str, Any], words: Words) -> str:
    """Jan 2020 – Present. Only an end: that date alone."""
    start, end = entry.get("startDate") or "", entry.get("endDate") or ""
    if not start:
        return date_words(end, words)
    first, last = date_words(start, words), date_words(end, words) if end else words.present
    return first if first == last else f"{first} – {last}"


def _item(shown: str, target: str | None) -> dict[str, str]:
    return {"shown": _cut(shown), "target": target or ""}


def _shown(url: str) -> str:
    """An address as people write it."""
    return _SCHEME.sub("", url).rstrip("/")


def _paragraphs(text: str | None) -> list[str]:
    return [_cut(" ".join(part.split("\n"))) for part in re.split(r"\n\s*\n", text or "") if part.strip()]


def _cut(text: str) -> str:
    """Mark where words that are too long for a line may be broken."""
    return _LONG_WORD.sub(lambda word: MARK.join(_pieces(word.group())), text)


def _pieces(word: str) -> list[str]:
    """Behind a sign of an address, else after ten characters; never before a combining mark."""
    pieces = [word[0]]
    for character in word[1:]:
        last = pieces[-1]
        ends = len(last) >= _PIECE_MAX or last[-1] in "/.-_@?&="
        if ends and not unicodedata.category(character).startswith(("M", "C")):
            pieces.append(character)
        else:
            pieces[-1] += character
    return pieces
