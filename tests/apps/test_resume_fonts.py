"""What can be printed is read from the fonts, and they come with their licence (demand 3)."""

import unicodedata
from pathlib import Path

import pytest

from livewell.apps.resumes.fonts import FONTS, Characters, character_name, coverage, scripts


def test_latin_greek_and_cyrillic_come_with_the_package_and_are_small() -> None:
    found = scripts(coverage())

    assert {script for script, held in found.items() if held} == {"Latin", "Vietnamese", "Greek", "Cyrillic"}
    assert sum(path.stat().st_size for path in Path(FONTS).iterdir()) < 3_000_000
    assert "SIL OPEN FONT LICENSE" in (Path(FONTS) / "OFL.txt").read_text()


def test_every_face_of_the_family_has_the_same_characters() -> None:
    faces = [font for font in coverage() if "NotoSans-" in font.file]

    assert len(faces) == 4
    assert len({font.ranges for font in faces}) == 1


@pytest.mark.parametrize("block", [(0x21, 0x7E), (0xA1, 0x17F), (0x391, 0x3A1), (0x400, 0x45F), (0x1E00, 0x1EFF)])
def test_whole_blocks_of_letters_are_there(block: tuple[int, int]) -> None:
    text = "".join(map(chr, range(block[0], block[1] + 1)))

    assert Characters(coverage()).missing(text) is None


def test_signs_that_people_write_in_documents_are_there() -> None:
    assert Characters(coverage()).missing("•–—’“”…€£₽×÷±½²°→←↔⇒≥≤≈√∞✓★●■►\n") is None


def test_the_first_character_that_is_missing_is_told_by_its_name() -> None:
    missing = Characters(coverage()).missing("so 😀 and 世")

    assert missing == "😀"
    assert character_name(missing) == "U+1F600 GRINNING FACE"
    assert character_name("\ue000") == "U+E000 without a name"
    assert unicodedata.name("世").startswith("CJK")


def test_a_folder_of_the_settings_adds_to_it_and_what_is_no_font_adds_nothing(tmp_path: Path) -> None:
    whole = (Path(FONTS) / "NotoSansMath-Subset.ttf").read_bytes()
    (tmp_path / "a.ttf").write_bytes(whole)
    (tmp_path / "cut.ttf").write_bytes(whole[:100])
    (tmp_path / "text.otf").write_text("not a font")
    (tmp_path / "read.me").write_text("no font")

    added = {Path(font.file).name: font.characters for font in coverage([str(tmp_path)]) if str(tmp_path) in font.file}

    assert added["a.ttf"] > 100
    assert added["cut.ttf"] == added["text.otf"] == 0
    assert "read.me" not in added
