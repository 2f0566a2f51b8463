"""The text of every template is read back equal to the document's fields, in order (issue 17, demand 4)."""

import copy
import json
import string
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from livewell.apps.resumes.render import TEMPLATES, render
from livewell.apps.resumes.sample import DOCUMENT
from livewell.apps.resumes.schema import SECTIONS, Resume
from tests.support.resume_pdf import fields_of, text_of, unread

NAMES = [
    "Łukasz Żółć", "Søren Ærø Ødegård", "Đặng Thị Ngọc Ánh", "Íñigo Muñoz-Peña", "Ğülşah Çağlayan", "Zoë Müller",
    "Αλέξανδρος Παπαδόπουλος", "Ἀριστοτέλης", "Елена Щёголева", "Їжакевич Ґалаґан", "Ňuňo Čapek",
    "office affine waffle fjord fi fl ffi ffl", "Te To AV WA Yo", "J. R. R. O’Neill", "50 % – €1,200 → 3 × ½",
]  # fmt: skip
_LETTERS = (
    string.ascii_letters + string.digits + "äöüßéèêëïçñøåæœłżąęśćđğışțșěřůűő" + "αβγδεζηθάέήίόύώς" + "абвгдежзщюяёїєґ"
)
words = st.one_of(
    st.sampled_from([word for name in NAMES for word in name.split() if len(word) > 1]),
    st.text(_LETTERS, min_size=1, max_size=14),
    st.sampled_from(["ffi", "ffl", "fi", "office", "Donaudampfschifffahrtsgesellschaft"]),
    st.text(_LETTERS, min_size=40, max_size=200),
)
lines = st.lists(words, min_size=1, max_size=6).map(lambda chosen: " ".join(chosen)[:290].strip())
texts = st.lists(words, min_size=1, max_size=40).map(" ".join)
dates = st.sampled_from(["", "2019", "2019-04", "2019-04-30"])
entries = st.fixed_dictionaries(
    {
        "position": lines,
        "name": lines,
        "summary": texts,
        "highlights": st.lists(texts, max_size=4),
        "startDate": dates,
        "endDate": dates,
    }
)
resumes = st.fixed_dictionaries(
    {
        "basics": st.fixed_dictionaries({"name": lines, "label": lines, "summary": texts, "phone": words}),
        "work": st.lists(entries, max_size=5),
        "skills": st.lists(
            st.fixed_dictionaries({"name": lines, "level": lines, "keywords": st.lists(lines, max_size=5)}), max_size=4
        ),
        "references": st.lists(st.fixed_dictionaries({"name": lines, "reference": texts}), max_size=2),
        "titles": st.dictionaries(st.sampled_from(["work", "skills"]), lines, max_size=2),
        "sections": st.lists(st.sampled_from(SECTIONS), unique=True, max_size=4),
        "language": st.sampled_from(["en", "de", "el", "ru", "pt-BR", "sv"]),
    }
)


def pdf_of(resume: dict[str, Any], **options: object) -> bytes:
    return render(json.dumps(resume).encode(), json.dumps(options).encode()).data


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_document_with_every_section_is_read_back_field_by_field(template: str) -> None:
    assert unread(pdf_of(DOCUMENT, template=template), DOCUMENT) is None
    assert len(fields_of(DOCUMENT)) > 50


@pytest.mark.parametrize("template", TEMPLATES)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(resume=resumes)
def test_whatever_somebody_writes_is_read_back_in_order(template: str, resume: dict[str, Any]) -> None:
    """Diacritics, Greek, Cyrillic, ligatures, words longer than a line; on as many pages as it takes."""
    content = json.loads(Resume.model_validate(resume).canonical())

    assert unread(pdf_of(content, template=template, margin=1.5), content) is None


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_read_back_as_it_was_written(template: str, name: str) -> None:
    assert name in text_of(pdf_of({"basics": {"name": name}}, template=template))


def test_the_check_itself_notices_a_word_that_is_torn_apart() -> None:
    """Proof that the oracle can fail: a field that reads differently, an order that is another."""
    pdf = pdf_of(DOCUMENT)
    other = copy.deepcopy(DOCUMENT)
    other["basics"]["name"] = "Ada Love lace"
    turned = {**DOCUMENT, "sections": ["references"]}

    assert unread(pdf, other) is not None
    assert unread(pdf, turned) is not None


def test_sections_come_in_the_order_and_under_the_titles_that_were_asked_for() -> None:
    resume = {
        **DOCUMENT,
        "sections": ["skills", "education"],
        "titles": {"skills": "What I can do"},
        "hidden": ["work"],
    }

    text = text_of(pdf_of(resume))

    assert text.index("What I can do") < text.index("Education") < text.index("Profile")
    assert "Experience" not in text
    assert unread(pdf_of(resume), resume) is None


@pytest.mark.parametrize(("language", "title"), [("de", "Berufserfahrung"), ("el", "Εκπαίδευση"), ("uk", "Освіта")])
def test_titles_of_sections_speak_the_language_of_the_document(language: str, title: str) -> None:
    assert title in text_of(pdf_of({**DOCUMENT, "language": language}))


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_name_that_is_wider_than_its_column_does_not_run_into_what_stands_beside_it(template: str) -> None:
    names = ["Kommunikationsfähigkeiten", "Wissenschaftskommunikation WWWWWWWWWWWWWWWW", "Щ" * 32]
    skills = [{"name": name, "level": "Щ" * 20, "keywords": ["Reden", "Щ" * 32]} for name in names]
    resume = {"basics": {"name": "Ada"}, "skills": skills}

    assert unread(pdf_of(resume, template=template, margin=2), resume) is None


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("language", ["pt", "es", "pl", "cs", "de", "en"])
def test_a_hyphen_at_the_end_of_a_line_is_not_said_twice(template: str, language: str) -> None:
    """Portuguese and others repeat it on the next line; a machine would read another name."""
    resume = {"basics": {"name": "Ana", "summary": "Muñoz-Peña e Pérez-Reverte " * 40}, "language": language}

    text = "".join(text_of(pdf_of(resume, template=template)).split())

    assert "--" not in text
    assert text.count("Muñoz-Peña") == text.count("Pérez-Reverte") == 40
