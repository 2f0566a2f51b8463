"""The content of a résumé: JSON Resume 1.0 with what its users miss, strict and bounded.

Beside the published schema: `sections` (which sections, in which order), `titles` (a section's own
title), `language`, and `imageAlt` (what the photo shows: a PDF that everybody can read needs it).
`image` is the photo itself as a data URI; an address is refused, because nothing is fetched while a
document is rendered. Fields that the schema does not know are refused by their place; `$schema`,
and of `meta` what we do not use, are dropped.

Every text is one form: NFC, no control characters, no spaces around it. Line breaks are kept where
paragraphs are allowed.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Section = Literal[
    "summary", "work", "volunteer", "education", "awards", "certificates", "publications",
    "skills", "languages", "interests", "references", "projects",
]  # fmt: skip
SECTIONS: Final[tuple[Section, ...]] = (
    "summary", "work", "projects", "education", "skills", "certificates", "awards", "publications",
    "volunteer", "languages", "interests", "references",
)  # fmt: skip

LINE_CHARS_MAX = 300
TEXT_CHARS_MAX = 5_000
ENTRIES_MAX = 100  # of a section
POINTS_MAX = 50  # of an entry
_DEPTH_MAX = 20
IMAGE_CHARS_MAX = 7_000_000  # a photo of 5 MB in base64

_IMAGE = re.compile(r"data:image/(?:png|jpeg|jpg|webp);base64,[A-Za-z0-9+/]+={0,2}")
_DATE = re.compile(r"\d{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?")
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}")
_ADDRESS = re.compile(r"https?://[^\s/?#]+[^\s]*", re.IGNORECASE)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")


def _clean(text: str, *, breaks: bool) -> str:
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", " ")).strip()
    for character in text:
        category = unicodedata.category(character)
        if category in {"Cc", "Cs"} and not (breaks and character == "\n"):
            raise ValueError(f"the character U+{ord(character):04X} is not allowed here")
        if 0xFDD0 <= ord(character) <= 0xFDEF or ord(character) & 0xFFFE == 0xFFFE:
            raise ValueError(f"U+{ord(character):04X} is not a character")
    return text


def _line(text: str) -> str:
    return _clean(text, breaks=False)


def _paragraphs(text: str) -> str:
    return _clean(text, breaks=True)


def _matching(pattern: re.Pattern[str], what: str) -> AfterValidator:
    def check(text: str) -> str:
        if text and not pattern.fullmatch(text):
            raise ValueError(f"this is not {what}")
        return text

    return AfterValidator(check)


Line = Annotated[str, Field(max_length=LINE_CHARS_MAX), AfterValidator(_line)]
Text = Annotated[str, Field(max_length=TEXT_CHARS_MAX), AfterValidator(_paragraphs)]
Date = Annotated[Line, _matching(_DATE, "a date as 2026, 2026-11 or 2026-11-19")]
Address = Annotated[
    str,
    Field(max_length=2_000),
    AfterValidator(_line),
    _matching(_ADDRESS, "an address that begins with https:// or http://"),
]
Email = Annotated[Line, _matching(_EMAIL, "an e-mail address")]
Language = Annotated[Line, _matching(_LANGUAGE, "a language tag as en or pt-BR")]
Image = Annotated[
    str,
    Field(max_length=IMAGE_CHARS_MAX),
    _matching(_IMAGE, "a data URI of a PNG, JPEG or WebP picture; addresses are not fetched"),
]
Points = Annotated[list[Text], Field(max_length=POINTS_MAX)]
Words = Annotated[list[Line], Field(max_length=POINTS_MAX)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Location(_Part):
    """Where somebody lives."""

    address: Line = ""
    postalCode: Line = ""  # noqa: N815 - JSON Resume's own names, here and below
    city: Line = ""
    countryCode: Line = ""  # noqa: N815
    region: Line = ""


class Profile(_Part):
    """An account at a network."""

    network: Line = ""
    username: Line = ""
    url: Address = ""


class Basics(_Part):
    """Who it is about. image: a data URI. imageAlt: what the photo shows, for those who cannot see it."""

    name: Line = ""
    label: Line = ""
    image: Image = ""
    imageAlt: Line = ""  # noqa: N815
    email: Email = ""
    phone: Line = ""
    url: Address = ""
    summary: Text = ""
    location: Location = Location()
    profiles: Annotated[list[Profile], Field(max_length=20)] = []


class _Dated(_Part):
    startDate: Date = ""  # noqa: N815
    endDate: Date = ""  # noqa: N815


class Work(_Dated):
    """A position. Without endDate it lasts."""

    name: Line = ""
    location: Line = ""
    description: Line = ""
    position: Line = ""
    url: Address = ""
    summary: Text = ""
    highlights: Points = []


class Volunteer(_Dated):
    """Work without pay."""

    organization: Line = ""
    position: Line = ""
    url: Address = ""
    summary: Text = ""
    highlights: Points = []


class Education(_Dated):
    """A school or a course."""

    institution: Line = ""
    url: Address = ""
    area: Line = ""
    studyType: Line = ""  # noqa: N815
    score: Line = ""
    courses: Points = []


class Award(_Part):
    """A prize."""

    title: Line = ""
    date: Date = ""
    awarder: Line = ""
    summary: Text = ""


class Certificate(_Part):
    """An examination passed."""

    name: Line = ""
    date: Date = ""
    issuer: Line = ""
    url: Address = ""


class Publication(_Part):
    """A book, an article, a talk."""

    name: Line = ""
    publisher: Line = ""
    releaseDate: Date = ""  # noqa: N815
    url: Address = ""
    summary: Text = ""


class Skill(_Part):
    """Something that somebody can do, and how well."""

    name: Line = ""
    level: Line = ""
    keywords: Words = []


class Spoken(_Part):
    """A language that somebody speaks."""

    language: Line = ""
    fluency: Line = ""


class Interest(_Part):
    """What somebody likes."""

    name: Line = ""
    keywords: Words = []


class Reference(_Part):
    """What somebody else says."""

    name: Line = ""
    reference: Text = ""


class Project(_Dated):
    """Something made."""

    name: Line = ""
    description: Text = ""
    highlights: Points = []
    keywords: Words = []
    url: Address = ""
    roles: Words = []
    entity: Line = ""
    type: Line = ""


class Meta(BaseModel):
    """lastModified: the time in the PDF. asOf: of the data that the document cites, printed in it."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    lastModified: Annotated[Line, Field(max_length=40)] = ""  # noqa: N815
    asOf: Annotated[Line, Field(max_length=40)] = ""  # noqa: N815


class Resume(_Part):
    """A résumé. sections: those that are shown, in this order; those that are not named follow, unless hidden."""

    basics: Basics = Basics()
    work: Annotated[list[Work], Field(max_length=ENTRIES_MAX)] = []
    volunteer: Annotated[list[Volunteer], Field(max_length=ENTRIES_MAX)] = []
    education: Annotated[list[Education], Field(max_length=ENTRIES_MAX)] = []
    awards: Annotated[list[Award], Field(max_length=ENTRIES_MAX)] = []
    certificates: Annotated[list[Certificate], Field(max_length=ENTRIES_MAX)] = []
    publications: Annotated[list[Publication], Field(max_length=ENTRIES_MAX)] = []
    skills: Annotated[list[Skill], Field(max_length=ENTRIES_MAX)] = []
    languages: Annotated[list[Spoken], Field(max_length=ENTRIES_MAX)] = []
    interests: Annotated[list[Interest], Field(max_length=ENTRIES_MAX)] = []
    references: Annotated[list[Reference], Field(max_length=ENTRIES_MAX)] = []
    projects: Annotated[list[Project], Field(max_length=ENTRIES_MAX)] = []
    sections: Annotated[list[Section], Field(max_length=len(SECTIONS))] = []
    hidden: Annotated[list[Section], Field(max_length=len(SECTIONS))] = []
    titles: dict[Section, Line] = {}
    language: Language = "en"
    meta: Meta = Meta()

    @model_validator(mode="before")
    @classmethod
    def _drop_what_is_about_the_file(cls, content: Any) -> Any:
        if isinstance(content, dict):
            return {name: value for name, value in _without_nulls(content).items() if name != "$schema"}
        return content

    @model_validator(mode="after")
    def _name_each_section_once(self) -> Self:
        for name in ("sections", "hidden"):
            named = getattr(self, name)
            if len(named) != len(set(named)):
                raise ValueError(f"{name} names a section twice")
        return self

    def canonical(self) -> bytes:
        """The one form that is kept and hashed: sorted JSON, without what is empty."""
        content = self.model_dump(mode="json", exclude_defaults=True)
        return json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def _without_nulls(value: Any, depth: int = 0) -> Any:
    """Many files in the wild say null for what is not there."""
    if depth > _DEPTH_MAX:
        raise ValueError(f"more than {_DEPTH_MAX} levels of lists and objects")
    if isinstance(value, dict):
        return {name: _without_nulls(part, depth + 1) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part, depth + 1) for part in value if part is not None]
    return value
