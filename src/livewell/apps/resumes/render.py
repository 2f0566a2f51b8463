"""A résumé as a PDF: `render` runs in the sandboxed child, and `preview` shows its first page.

    document, options ──▶ characters known? ──▶ view ──▶ photo ──▶ typst ──▶ PDF ──▶ pages counted

The document is data: it reaches the template as JSON in sys.inputs, never as typst source, and the
template shows strings without evaluating them. The same document and options give the same bytes:
the time in the file is the version's (`meta.lastModified`), and typst names nothing by chance.

After warm_up nothing is read from disk: templates and fonts are in memory, and the sandbox would
refuse it. Errors name a field and a character, never a text (E15).
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import typst

from livewell.apps.resumes import sample
from livewell.apps.resumes.fonts import Characters, character_name
from livewell.apps.resumes.pages import count_pages
from livewell.apps.resumes.photo import photo_jpeg
from livewell.apps.resumes.press import Press
from livewell.apps.resumes.view import view_of
from livewell.apps.resumes.words import words_of
from livewell.exports.render.rendered import Rendered, RenderRefused

TEMPLATES: Final = {"minimal": 26.0, "modern": 30.0, "compact": 20.0}  # and the photo's millimetres
_PAPERS: Final = {"A4": "a4", "Letter": "us-letter", "Legal": "us-legal"}
_STANDARDS: Final = {"accessible": ["a-2a", "ua-1"], "plain": ["1.7"]}
_SIDES: Final = ("top", "right", "bottom", "left")
_NOT_PRINTED: Final = frozenset({"basics.image", "basics.imageAlt", "meta", "language", "sections", "hidden"})
PREVIEW_PIXELS = 800  # across the page
_PAPER_INCHES: Final = {"A4": 8.27, "Letter": 8.5, "Legal": 8.5}


_press: list[Press] = []  # one, once warm_up ran


def warm_up(fonts: tuple[str, ...]) -> None:
    """Read all that is on disk, and make each template once: typst starts its threads now."""
    _press[:] = [Press(fonts, TEMPLATES)]
    document = json.dumps(sample.DOCUMENT).encode()
    for template in TEMPLATES:
        render(document, json.dumps({"template": template}).encode())
    preview(document, b"{}")
    for broken in (b"[", b'{"basics":{"name":"\xf4\x8f\xbf\xbd"}}'):  # what errors need is imported now
        try:
            render(broken, b"{}")
        except RenderRefused:
            continue


def render(document: bytes, options: bytes) -> Rendered:
    """The PDF of a résumé in its canonical form, with the options of an export."""
    resume, chosen = _parsed(document), _options(options)
    pdf = _compile(resume, chosen, format="pdf", pdf_standards=_STANDARDS[chosen["standard"]])
    try:
        return Rendered(pdf[0], count_pages(pdf[0]))
    except ValueError:
        raise RenderRefused("internal", "the pages of the file cannot be counted") from None


def preview(document: bytes, options: bytes) -> Rendered:
    """The first page as a PNG, about 800 pixels across; pages: as many as the PDF would have."""
    resume, chosen = _parsed(document), _options(options)
    drawn = _compile(resume, chosen, format="png", ppi=PREVIEW_PIXELS / _PAPER_INCHES[chosen["page"]])
    return Rendered(drawn[0], len(drawn))


def _compile(resume: dict[str, Any], chosen: dict[str, Any], **how: Any) -> list[bytes]:
    if not _press:  # no child has warmed it: a test, a notebook
        _press.append(Press((), TEMPLATES))
    [press] = _press
    _refuse_unknown_characters(resume, press.characters)
    try:
        inputs = _inputs(resume, chosen, press)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        # What the schema wrote always fits; this was written by somebody else.
        raise RenderRefused("bad_document", "this is not a résumé in its canonical form") from None
    try:
        return press.print(chosen["template"], inputs, timestamp=_timestamp(resume, chosen), **how)
    except typst.TypstError:
        # Its words may hold words of the document.
        raise RenderRefused("template", f"the template {chosen['template']} cannot show this document") from None


def _inputs(resume: dict[str, Any], chosen: dict[str, Any], press: Press) -> dict[str, str]:
    """All that the template is told: strings, as typst wants them."""
    basics = resume.get("basics") or {}
    language, _, region = str(resume.get("language") or "en").partition("-")
    words = words_of(resume.get("language") or "en")
    told = {
        "view": view_of(resume),
        "title": " – ".join(part for part in (basics.get("name"), words.document) if part),
        "author": basics.get("name") or "",
        "subject": basics.get("label") or words.document,
        "language": language,
        "region": region if len(region) == 2 else "",
        "families": press.families_for(language),
        "paper": _PAPERS[chosen["page"]],
        "margins": chosen["margins"],
        "grey": chosen["colour"] == "grey",
        "asof": _as_of(resume, chosen, words.as_of),
        "alt": basics.get("imageAlt") or "",
    }
    inputs = {"told": json.dumps(told, ensure_ascii=False)}
    if image := basics.get("image"):
        if not told["alt"]:
            raise RenderRefused("missing_alt_text", "basics.imageAlt: say what the photo shows")
        size = TEMPLATES[chosen["template"]]
        jpeg = photo_jpeg(image, millimetres=size, quality=chosen["quality"], grey=told["grey"])
        inputs["photo"] = json.dumps(list(jpeg))  # sys.inputs has strings only; typst makes bytes of numbers
    return inputs


def _parsed(document: bytes) -> dict[str, Any]:
    try:
        resume = json.loads(document)
    except (ValueError, RecursionError):
        raise RenderRefused("bad_document", "this is not JSON") from None
    if not isinstance(resume, dict):
        raise RenderRefused("bad_document", "a résumé is a JSON object")
    return resume


def _options(options: bytes) -> dict[str, Any]:
    """The options of E6, as an export keeps them. What is not given has its default."""
    given = json.loads(options or b"{}")
    chosen = {
        "template": given.get("template") or "minimal",
        "page": given.get("page") or "Letter",
        "quality": given.get("quality") or "normal",
        "colour": given.get("colour") or "colour",
        "standard": given.get("standard") or "accessible",
        "timestamp": given.get("timestamp"),
        "as_of": given.get("as_of"),
    }
    known: dict[str, Iterable[str]] = {
        "template": TEMPLATES, "page": _PAPERS, "quality": ("draft", "normal", "high"),
        "colour": ("colour", "grey"), "standard": _STANDARDS,
    }  # fmt: skip
    for name, values in known.items():
        if chosen[name] not in values:
            raise RenderRefused("template", f"{name}: allowed are {', '.join(values)}")
    chosen["margins"] = _margins(given)
    return chosen


def _margins(given: dict[str, Any]) -> dict[str, float]:
    """Inches by side. `margin` is for all sides, or a table of sides; `margin_top` … for one."""
    every = given.get("margin")
    sides = every if isinstance(every, dict) else dict.fromkeys(_SIDES, 1 if every is None else every)
    margins = {}
    for side in _SIDES:
        own = given.get(f"margin_{side}")
        inches = float(sides.get(side, 1) if own is None else own)
        if not 0 <= inches <= 2:
            raise RenderRefused("template", f"margin_{side}: 0 to 2 inches are allowed")
        margins[side] = inches
    return margins


def _timestamp(resume: dict[str, Any], chosen: dict[str, Any]) -> int:
    """The version's own time, so that a second render gives the same bytes."""
    when = chosen["timestamp"] or (resume.get("meta") or {}).get("lastModified")
    if isinstance(when, (int, float)):
        return int(when)
    moment = _moment(when)
    return int(moment.timestamp()) if moment else 0


def _as_of(resume: dict[str, Any], chosen: dict[str, Any], words: str) -> str:
    """The line that says how old the data is that the document cites; none if it cites none."""
    moment = _moment(chosen["as_of"] or (resume.get("meta") or {}).get("asOf"))
    return f"{words} {moment:%Y-%m-%d %H:%M} UTC" if moment else ""


def _moment(text: object) -> dt.datetime | None:
    if not isinstance(text, str) or not text:
        return None
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return zoned.astimezone(dt.UTC)


def _refuse_unknown_characters(resume: dict[str, Any], characters: Characters) -> None:
    hidden = set(resume.get("hidden") or [])
    for place, text in _printed({name: part for name, part in resume.items() if name not in hidden}, ""):
        character = characters.missing(text)
        if character is not None:
            raise RenderRefused("unsupported_character", f"{place}: no font has {character_name(character)}")


def _printed(value: object, place: str) -> Iterator[tuple[str, str]]:
    """Every text that will be seen, and where it is: work[2].summary."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _printed(part, f"{place}[{number}]")
    elif isinstance(value, dict):
        for name, part in value.items():
            inner = f"{place}.{name}" if place else name
            if inner not in _NOT_PRINTED:
                yield from _printed(part, inner)
