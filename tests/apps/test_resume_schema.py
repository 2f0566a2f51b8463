"""What a résumé may be: JSON Resume, strict and bounded, in one canonical form (E16)."""

import json
import unicodedata
from typing import Any

import pytest
from pydantic import ValidationError

from livewell.apps.resumes.sample import DOCUMENT
from livewell.apps.resumes.schema import LINE_CHARS_MAX, SECTIONS, Resume


def refused(content: Any) -> list[str]:
    with pytest.raises(ValidationError) as error:
        Resume.model_validate(content)
    return [".".join(str(part) for part in problem["loc"]) for problem in error.value.errors()]


def test_a_document_with_every_section_is_accepted_and_comes_back_the_same() -> None:
    content = json.loads(Resume.model_validate(DOCUMENT).canonical())

    assert content == DOCUMENT
    assert set(SECTIONS) - {"summary"} <= set(content)


def test_the_canonical_form_does_not_depend_on_the_order_or_on_what_is_empty() -> None:
    one = {"basics": {"name": "Ada", "label": ""}, "work": [], "language": "en"}
    other = {"language": "en", "basics": {"label": None, "name": " Ada "}, "$schema": "https://example.com/schema.json"}

    assert Resume.model_validate(one).canonical() == Resume.model_validate(other).canonical()
    assert (
        Resume.model_validate_json(Resume.model_validate(one).canonical()).canonical() == b'{"basics":{"name":"Ada"}}'
    )


def test_text_has_one_form() -> None:
    torn = unicodedata.normalize("NFD", "Ängström") + "\r\nand\tmore"

    summary = Resume.model_validate({"basics": {"summary": torn}}).basics.summary

    assert summary == "Ängström\nand more"


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ({"nick": "x"}, "nick"),
        ({"basics": {"nick": "x"}}, "basics.nick"),
        ({"work": [{}, {"salary": 1}]}, "work.1.salary"),
        ({"work": {}}, "work"),
        ({"basics": {"name": 7}}, "basics.name"),
        ({"basics": {"email": "nobody"}}, "basics.email"),
        ({"basics": {"url": "javascript:alert(1)"}}, "basics.url"),
        ({"basics": {"url": "file:///etc/passwd"}}, "basics.url"),
        ({"basics": {"image": "https://evil.example/a.png"}}, "basics.image"),
        ({"basics": {"image": "data:image/svg+xml;base64,PHN2Zy8+"}}, "basics.image"),
        ({"basics": {"name": "a\nb"}}, "basics.name"),
        ({"basics": {"summary": "a\x00b"}}, "basics.summary"),
        ({"basics": {"summary": "a\x1b[2Jb"}}, "basics.summary"),
        ({"basics": {"summary": "\ufdd0"}}, "basics.summary"),
        ({"basics": {"name": "x" * (LINE_CHARS_MAX + 1)}}, "basics.name"),
        ({"work": [{"startDate": "May 2019"}]}, "work.0.startDate"),
        ({"work": [{"endDate": "2019-13"}]}, "work.0.endDate"),
        ({"work": [{}] * 101}, "work"),
        ({"work": [{"highlights": ["x"] * 51}]}, "work.0.highlights"),
        ({"sections": ["salary"]}, "sections.0"),
        ({"sections": ["work", "work"]}, ""),
        ({"titles": {"salary": "x"}}, "titles.salary.[key]"),
        ({"language": "Klingon; drop"}, "language"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_place(content: dict[str, Any], place: str) -> None:
    assert place in refused(content)


def test_a_document_of_a_thousand_levels_is_refused_and_does_not_end_the_process() -> None:
    nested: Any = "x"
    for _ in range(500):
        nested = [nested]

    assert refused({"basics": nested})


def test_meta_keeps_what_is_used_and_drops_the_rest() -> None:
    meta = {"canonical": "https://x.example", "version": "v1", "lastModified": "2026-11-19T22:00:00Z", "theme": "x"}

    assert json.loads(Resume.model_validate({"meta": meta}).canonical()) == {
        "meta": {"lastModified": "2026-11-19T22:00:00Z"}
    }
