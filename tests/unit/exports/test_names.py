"""Names of files that reach other people's disks (E9)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from livewell.exports.zip.names import NAME_BYTES_MAX, safe_name, safe_names


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("cv.pdf", "cv.pdf"),
        ("Lebenslauf Müller.pdf", "Lebenslauf Müller.pdf"),
        ("Mu\u0308ller.pdf", "Müller.pdf"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("..\\..\\boot.ini", "_.._boot.ini"),
        ("C:\\cv.pdf", "C__cv.pdf"),
        ("/etc/shadow", "_etc_shadow"),
        ("a/b.pdf", "a_b.pdf"),
        ("CON.pdf", "_CON.pdf"),
        ("con", "_con"),
        ("lpt¹.txt", "_lpt¹.txt"),
        ("Nul .pdf", "_Nul .pdf"),
        ("console.pdf", "console.pdf"),
        ("cv\u202efdp.exe", "cvfdp.exe"),
        ("c\u200bv\ufeff.pdf", "cv.pdf"),
        ("a\nb\r\tc.pdf", "a b c.pdf"),
        ("a\0b.pdf", "ab.pdf"),
        ("\ud800x.pdf", "x.pdf"),
        (" .hidden. ", "hidden"),
        ("--rf.pdf", "rf.pdf"),
        ("", "document"),
        ("...", "document"),
        ("\u202e", "document"),
        ('a<b>c:"d|e?f*.pdf', "a_b_c__d_e_f_.pdf"),
        ("履歴書.pdf", "履歴書.pdf"),
    ],
)
def test_a_name_becomes_the_nearest_safe_one(name: str, safe: str) -> None:
    """Traversal, devices of Windows, signs that cannot be seen, and names that are nothing."""
    assert safe_name(name) == safe


def test_a_long_name_is_cut_between_characters_and_keeps_its_suffix() -> None:
    """The bound is one of bytes, because that is what file systems count."""
    found = safe_name("ü" * 500 + ".pdf")
    assert found == "ü" * 98 + ".pdf"
    assert len(found.encode()) <= NAME_BYTES_MAX


@pytest.mark.parametrize(
    ("names", "unique"),
    [
        (["cv.pdf", "cv.pdf", "cv.pdf"], ["cv.pdf", "cv (2).pdf", "cv (3).pdf"]),
        (["cv.pdf", "CV.PDF"], ["cv.pdf", "CV (2).PDF"]),
        (["cv.pdf", "cv (2).pdf", "cv.pdf"], ["cv.pdf", "cv (2).pdf", "cv (3).pdf"]),
        (["M\u00fc.pdf", "Mu\u0308.pdf"], ["Mü.pdf", "Mü (2).pdf"]),
        (["ﬁle.pdf", "file.pdf"], ["ﬁle.pdf", "file (2).pdf"]),
        (["straße.pdf", "STRASSE.pdf"], ["straße.pdf", "STRASSE (2).pdf"]),
        (["a/b", "a\\b"], ["a_b", "a_b (2)"]),
        (["manifest.json"], ["manifest (2).json"]),
    ],
)
def test_names_that_some_system_takes_for_one_are_numbered(names: list[str], unique: list[str]) -> None:
    """In another case, in compatible characters, or after they were made safe."""
    assert safe_names(names, taken=["manifest.json"]) == unique


@given(st.lists(st.text(max_size=300), max_size=12))
@example(["x" * 198 + ".pdf"] * 12)
@example(["CON", "con", "_con"])
@example(["con." + "x" * 300, "con.pdf" + "x" * 300])
@example(["e\u0301" * 150, "é" * 150])
def test_every_list_of_names_becomes_safe_and_unique(names: list[str]) -> None:
    """Whatever people call their documents; a second time changes nothing."""
    found = safe_names(names)
    assert len(found) == len(names)
    assert len({unicodedata.normalize("NFKC", name).casefold() for name in found}) == len(names)
    for name in found:
        assert 0 < len(name.encode()) <= NAME_BYTES_MAX
        assert not set(name) & set('<>:"/\\|?*')
        assert not name.startswith((".", " ", "-"))
        assert not name.endswith((".", " "))
        assert not [sign for sign in name if unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp")]
        assert unicodedata.is_normalized("NFC", name)
        assert safe_name(name) == name
