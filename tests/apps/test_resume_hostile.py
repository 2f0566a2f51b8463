"""Documents that want more than to be printed: they are printed as they are, or refused by name (E15)."""

import base64
import io
import json
import struct
import zlib
from typing import Any

import pytest
from PIL import Image

from livewell.apps.resumes import fonts
from livewell.apps.resumes.photo import photo_jpeg
from livewell.apps.resumes.render import TEMPLATES, render
from livewell.apps.resumes.sample import DOCUMENT
from livewell.exports.render.rendered import RenderRefused
from tests.support.resume_pdf import images_of, text_of, unread

CANARY = "canary-5e1d"
TYPST = [
    '#import "@preview/cetz:0.3.0": *',
    '#read("/etc/passwd")',
    '#include "shared.typ"',
    '#image("/etc/passwd")',
    "#while true {}",
    "#let f(x) = f(x + 1); #f(1)",
    "#sys.inputs",
    "#panic(sys.inputs.told)",
    "*bold* _emphasis_ `raw` $x^2$ = heading",
    "- list + enumeration / term: x",
    "<label> @reference // comment /* comment */",
    "\\u{41} \\ \\n ~ --- -- ... '\"",
    'https://evil.example/?q=#eval("1")',
    "]#[}{)(",
    '"; #eval("panic()"); "',
    "{{ name }} ${name} %s",
]


def rendered(resume: dict[str, Any], **options: object) -> bytes:
    return render(json.dumps(resume).encode(), json.dumps(options).encode()).data


def refusal(resume: dict[str, Any], **options: object) -> RenderRefused:
    with pytest.raises(RenderRefused) as refused:
        rendered(resume, **options)
    assert CANARY not in str(refused.value)
    assert "/" not in refused.value.detail
    assert refused.value.__cause__ is None
    return refused.value


def with_photo(data: bytes, kind: str = "png", **basics: object) -> dict[str, Any]:
    uri = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    return {"basics": {"name": CANARY, "image": uri, "imageAlt": "a photo", **basics}}


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("text", TYPST)
def test_markup_in_any_field_is_printed_and_never_run(template: str, text: str) -> None:
    resume = {
        "basics": {"name": text, "label": text, "summary": text, "phone": "1"},
        "work": [{"position": text, "name": text, "highlights": [text, text]}],
        "titles": {"work": text},
        "skills": [{"name": text, "keywords": [text]}],
        "references": [{"name": text, "reference": text}],
    }

    text_read = "".join(text_of(rendered(resume, template=template)).split())
    assert text_read.count("".join(text.split())) >= 9


@pytest.mark.parametrize("field", ["template", "page", "quality", "colour", "standard"])
def test_an_option_that_does_not_exist_is_refused(field: str) -> None:
    assert refusal(DOCUMENT, **{field: "../secret"}).reason == "template"


@pytest.mark.parametrize("margin", [-0.1, 2.01, "3", {"top": 9}])
def test_a_margin_outside_of_0_to_2_inches_is_refused(margin: object) -> None:
    assert refusal(DOCUMENT, margin=margin).reason == "template"


@pytest.mark.parametrize("document", [b"", b"[", b"[]", b"null", b'"x"', b"\xff", b"[" * 100_000])
def test_what_is_no_document_is_refused(document: bytes) -> None:
    with pytest.raises(RenderRefused) as refused:
        render(document, b"{}")

    assert refused.value.reason == "bad_document"


@pytest.mark.parametrize(
    "document",
    [{"work": "text"}, {"basics": "x"}, {"skills": [1]}, {"titles": {"work": 1}, "work": [{"name": "x"}]}, {"work": 3}],
)
def test_a_document_of_another_shape_is_refused_too(document: dict[str, Any]) -> None:
    assert refusal(document).reason == "bad_document"


@pytest.mark.parametrize("character", ["\U0001f600", "世", "한", "א", "ك", "\ue000", "\U0001d54f"])
def test_a_character_that_no_font_has_is_named_with_its_field(character: str) -> None:
    """Demand 3: no empty box is ever printed."""
    resume = {"basics": {"name": CANARY}, "work": [{"name": "x"}, {"summary": f"{CANARY} {character}"}]}

    refused = refusal(resume)

    assert refused.reason == "unsupported_character"
    assert refused.detail == f"work[1].summary: no font has {fonts.character_name(character)}"
    assert character not in refused.detail


def test_characters_of_what_is_not_printed_are_nobody_s_business() -> None:
    resume = {"basics": {"name": "Ada", "imageAlt": "世"}, "interests": [{"name": "世"}], "hidden": ["interests"]}

    assert unread(rendered(resume), resume) is None


def test_a_photo_needs_words_for_those_who_cannot_see_it() -> None:
    refused = refusal(with_photo(_png(20, 20), imageAlt=""))

    assert refused.reason == "missing_alt_text"


def _png(width: int, height: int) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (width, height), "red").save(data, "PNG")
    return data.getvalue()


def _bomb(width: int, height: int) -> bytes:
    """A small file that says it is a large picture."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(bytes(1_000_000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def _text_bomb() -> bytes:
    """A picture whose comment inflates to 200 MB."""
    text = zlib.compress(bytes(200_000_000), 9)
    data = b"comment\0\0" + text
    chunk = struct.pack(">I", len(data)) + b"zTXt" + data + struct.pack(">I", zlib.crc32(b"zTXt" + data))
    plain = _png(20, 20)
    return plain[:33] + chunk + plain[33:]


BAD = {
    "nothing": b"",
    "text": b"not a picture",
    "an SVG that names a file": b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>',
    "an SVG that names a page": b'<svg xmlns="http://www.w3.org/2000/svg"><image href="https://evil.example/"/></svg>',
    "a PDF": b"%PDF-1.7",
    "a picture cut in half": _png(300, 300)[:120],
    "a decompression bomb": _bomb(60_000, 60_000),
    "more pixels than are kept": _bomb(5_001, 5_000),
    "fewer pixels than it says": _bomb(4_000, 4_000),
    "a comment that is a bomb": _text_bomb(),
    "a GIF": b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;",
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_what_is_no_whole_picture_of_a_fair_size_is_refused(data: bytes) -> None:
    assert refusal(with_photo(data)).reason == "bad_image"


@pytest.mark.parametrize(
    "uri",
    [
        "https://evil.example/a.png",
        "file:///etc/passwd",
        "data:image/svg+xml;base64,PHN2Zy8+",
        "data:image/png;base64,????",
        "data:image/png;base64," + "A" * 7_000_000,
        "data:text/html,<script>",
    ],
)
def test_an_address_of_a_photo_is_never_followed(uri: str) -> None:
    assert refusal({"basics": {"name": "Ada", "image": uri, "imageAlt": "a photo"}}).reason == "bad_image"


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_every_kind_of_picture_is_printed(mode: str) -> None:
    data = io.BytesIO()
    Image.new(mode, (400, 300)).save(data, "PNG")

    assert len(images_of(rendered(with_photo(data.getvalue())))) == 1


@pytest.mark.parametrize("kind", ["JPEG", "WEBP"])
def test_a_photo_loses_what_it_knows_of_its_place_and_its_owner(kind: str) -> None:
    exif = Image.Exif()
    exif[0x010E] = CANARY  # ImageDescription
    data = io.BytesIO()
    Image.new("RGB", (400, 300), "red").save(data, kind, exif=exif)
    assert CANARY.encode() in data.getvalue()

    pdf = rendered(with_photo(data.getvalue(), kind.lower(), name="Ada"))

    assert CANARY.encode() not in pdf


def test_a_photo_that_lies_on_its_side_is_turned() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90°
    picture = Image.new("RGB", (400, 400), "blue")
    picture.paste("red", (0, 0, 200, 400))
    data = io.BytesIO()
    picture.save(data, "JPEG", exif=exif)

    uri = f"data:image/jpeg;base64,{base64.b64encode(data.getvalue()).decode()}"
    jpeg = photo_jpeg(uri, millimetres=26, quality="high", grey=False)
    with Image.open(io.BytesIO(jpeg)) as turned:
        top, bottom = turned.getpixel((150, 20)), turned.getpixel((150, 290))
    assert isinstance(top, tuple)
    assert isinstance(bottom, tuple)
    assert (top[0] > 200, top[2] < 60) == (True, True)
    assert (bottom[2] > 200, bottom[0] < 60) == (True, True)
