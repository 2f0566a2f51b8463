"""Every option of an export is seen in the PDF, and the PDF is for everybody (E6, E14)."""

import base64
import hashlib
import io
import json
import random
from itertools import pairwise
from typing import Any

import pytest
from PIL import Image

from livewell.apps.resumes.pages import count_pages
from livewell.apps.resumes.render import TEMPLATES, preview, render
from livewell.apps.resumes.sample import DOCUMENT
from tests.support.resume_pdf import colours_of, images_of, reader_of, structure_of, text_of, unread

INCH = 72


def photo(width: int = 900, height: int = 1200, kind: str = "JPEG", mode: str = "RGB") -> str:
    pixels = random.Random(7).randbytes(3 * 90 * 120)
    picture = Image.frombytes("RGB", (90, 120), pixels).resize((width, height)).convert(mode)
    data = io.BytesIO()
    picture.save(data, kind)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(data.getvalue()).decode()}"


def a_resume(**basics: object) -> dict[str, Any]:
    return {**DOCUMENT, "basics": {**DOCUMENT["basics"], **basics}}


def pdf_of(resume: dict[str, Any], **options: object) -> bytes:
    return render(json.dumps(resume).encode(), json.dumps(options).encode()).data


@pytest.mark.parametrize("template", TEMPLATES)
def test_title_author_subject_and_language_are_set_and_the_title_is_shown(template: str) -> None:
    reader = reader_of(pdf_of({**DOCUMENT, "language": "en-GB"}, template=template))
    root: Any = reader.trailer["/Root"]

    assert reader.metadata is not None
    assert reader.metadata.title == "Ada Lovelace – Résumé"
    assert reader.metadata.author == "Ada Lovelace"
    assert reader.metadata.subject == "Analyst and Metaphysician"
    assert root["/Lang"] == "en-GB"
    assert root["/ViewerPreferences"]["/DisplayDocTitle"] == True  # noqa: E712 - of pypdf
    assert root["/MarkInfo"]["/Marked"] == True  # noqa: E712


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_default_is_archivable_and_accessible(template: str) -> None:
    """PDF/A-2a and PDF/UA-1, as the file itself says it."""
    reader = reader_of(pdf_of(DOCUMENT, template=template))
    said = reader.trailer["/Root"]["/Metadata"].get_object().get_data().decode()  # type: ignore[index]

    assert "<pdfaid:part>2</pdfaid:part>" in said
    assert "<pdfaid:conformance>A</pdfaid:conformance>" in said
    assert "<pdfuaid:part>1</pdfuaid:part>" in said


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_structure_has_one_title_a_heading_for_each_section_and_lists(template: str) -> None:
    tree = structure_of(pdf_of(a_resume(image=photo()), template=template))
    headings = [kind for kind in tree if kind.startswith("H") and kind[1:].isdigit()]

    assert headings[0] == "H1"
    assert headings.count("H1") == 1
    assert headings.count("H2") == 12
    assert all(int(after[1]) - int(before[1]) <= 1 for before, after in pairwise(headings))
    assert tree.count("Figure") == 1
    assert tree.count("L") >= 2
    assert "Link" in tree


def test_plain_says_nothing_of_standards() -> None:
    said = pdf_of(DOCUMENT, standard="plain")

    assert b"pdfuaid" not in said
    assert unread(said, DOCUMENT) is None


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize(("page", "size"), [("A4", (595.28, 841.89)), ("Letter", (612, 792)), ("Legal", (612, 1008))])
def test_the_page_has_the_size_that_was_asked_for(template: str, page: str, size: tuple[float, float]) -> None:
    box = reader_of(pdf_of(DOCUMENT, template=template, page=page)).pages[0].mediabox

    assert (float(box.width), float(box.height)) == pytest.approx(size, abs=0.1)


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("inches", [0, 0.5, 1, "1.25", 2])
def test_the_left_margin_is_where_the_text_begins(template: str, inches: float | str) -> None:
    assert _left(pdf_of({"basics": {"name": "HHH"}}, template=template, margin=inches)) == pytest.approx(
        float(inches) * INCH, abs=0.1
    )


def test_each_side_may_have_its_own_margin() -> None:
    pdf = pdf_of({"basics": {"name": "HHH"}}, margin="1", margin_left="0.25")

    assert _left(pdf) == pytest.approx(0.25 * INCH, abs=0.1)


def _left(pdf: bytes) -> float:
    found: list[float] = []
    reader_of(pdf).pages[0].extract_text(
        visitor_text=lambda text, cm, tm, _font, _size: found.append(cm[4] + tm[4]) if text.strip() else None
    )
    return found[0]


@pytest.mark.parametrize("template", TEMPLATES)
def test_quality_is_the_number_of_pixels_of_the_photo(template: str) -> None:
    widths = [
        images_of(pdf_of(a_resume(image=photo()), template=template, quality=quality))[0][0]
        for quality in ("draft", "normal", "high")
    ]

    assert widths == [round(TEMPLATES[template] / 25.4 * dpi) for dpi in (96, 150, 300)]


@pytest.mark.parametrize("template", TEMPLATES)
def test_grey_leaves_no_colour_in_the_file(template: str) -> None:
    resume = a_resume(image=photo())

    assert 3 in colours_of(pdf_of(resume, template=template))
    grey = pdf_of(resume, template=template, colour="grey")
    assert colours_of(grey) == {1}
    assert [mode for _, _, mode in images_of(grey)] == ["L"]
    assert images_of(grey)[0][0] > 100


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_same_version_and_options_give_the_same_bytes(template: str) -> None:
    resume = {**a_resume(image=photo()), "meta": {"lastModified": "2026-11-19T22:00:00+00:00"}}

    hashes = {hashlib.sha256(pdf_of(resume, template=template)).hexdigest() for _ in range(3)}

    assert len(hashes) == 1
    metadata = reader_of(pdf_of(resume, template=template)).metadata
    assert metadata is not None
    assert metadata.creation_date is not None
    assert metadata.creation_date.isoformat() == "2026-11-19T22:00:00+00:00"


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("times", [1, 12, 40])
def test_pages_are_counted_from_the_file(template: str, times: int) -> None:
    """E14. A text that looks like the structure of a PDF is not counted."""
    trick = "/Type/Pages/Count 999 trailer startxref 0"
    resume = {**a_resume(name=trick), "work": DOCUMENT["work"] * times}
    rendered = render(json.dumps(resume).encode(), json.dumps({"template": template}).encode())

    assert rendered.pages == len(reader_of(rendered.data).pages)
    assert (rendered.pages or 0) > times / 12


def test_a_file_that_is_no_pdf_has_no_pages() -> None:
    with pytest.raises(ValueError, match="not built as expected"):
        count_pages(b"%PDF-1.7 nothing else")


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_document_that_cites_data_says_how_old_it_is(template: str) -> None:
    resume = {**DOCUMENT, "meta": {"asOf": "2026-11-19T21:45:00+01:00"}}

    assert text_of(pdf_of(resume, template=template)).rstrip().endswith("Data as of 2026-11-19 20:45 UTC")
    assert "Data as of" not in text_of(pdf_of(DOCUMENT, template=template))


def test_the_preview_is_a_picture_of_the_first_page() -> None:
    resume = {**DOCUMENT, "work": DOCUMENT["work"] * 12}

    drawn = preview(json.dumps(resume).encode(), b'{"page":"A4"}')

    with Image.open(io.BytesIO(drawn.data)) as picture:
        assert picture.format == "PNG"
        assert abs(picture.width - 800) <= 2
        assert picture.height > picture.width
    assert drawn.pages == render(json.dumps(resume).encode(), b'{"page":"A4"}').pages
