"""What every render of a child uses: typst, its templates and its fonts, all of them in memory.

    folders ──▶ faces ──within 120 MB──▶ each drawn once ──▶ families, characters
                          └── beyond: not used, and what only they have is refused by name

typst reads a font file when it is first drawn with. In the sandbox that is too late, so each face
draws one character here. A family that is not loaded is never asked: typst chooses only among the
families that the template names. A collection is read once for each of its faces, which is why the
bound is there: the ten families of Noto Sans CJK would be 380 MB. Of those the ones for Simplified
Chinese, Japanese and Korean come first.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any, Final

import typst

from livewell.apps.resumes.fonts import FONTS, Characters, Coverage, coverage

FONT_BYTES_MAX = 120_000_000
_FIRST = "Noto Sans"
_PREFERRED: Final = {"zh": " SC", "ja": " JP", "ko": " KR"}
_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")  # noqa: PTH100, PTH118, PTH120
_WARM = b"""
#for face in json(bytes(sys.inputs.faces)) {
  text(font: face.family, weight: face.weight, style: face.style, fallback: false, face.character)
}
"""


class Press:
    """Made once in a child, before the sandbox is shut."""

    def __init__(self, folders: Iterable[str], templates: Iterable[str]) -> None:
        folders = [folder for folder in folders if os.path.isdir(folder)]  # noqa: PTH112 - pathlib is not needed here
        fonts = typst.Fonts(include_system_fonts=False, include_embedded_fonts=False, font_paths=[FONTS, *folders])
        # Without folders for packages: there is no way to another file, and none to the network.
        closed = os.path.join(FONTS, "none")  # noqa: PTH118
        self._compiler = typst.Compiler(
            font_paths=fonts, ignore_system_fonts=True, root=_FOLDER, package_path=closed, package_cache_path=closed
        )
        shared = _read("shared.typ")
        self._sources = {name: shared + b"\n" + _read(f"{name}.typ") for name in templates}
        found = {font.file: font for font in coverage(folders)}
        self.families, used = _chosen(fonts, found)
        self.characters = Characters(used.values())
        self._draw_each(fonts, used)

    def _draw_each(self, fonts: typst.Fonts, used: dict[str, Coverage]) -> None:
        """Load every face that may be drawn with."""
        faces = [
            {"family": face.family, "weight": face.weight, "style": face.style, "character": _sample(used[face.path])}
            for face in fonts.fonts()
            if face.family in self.families and face.path in used
        ]
        self._compiler.compile(input=_WARM, sys_inputs={"faces": json.dumps(faces)}, format="pdf")

    def families_for(self, language: str) -> list[str]:
        """Those to draw with, in order. Chinese and Japanese share characters, each with shapes of its own."""
        ending = _PREFERRED.get(language, "\0")
        return sorted(self.families, key=lambda family: (family != _FIRST, not family.endswith(ending)))

    def print(self, source: str | bytes, inputs: dict[str, str], **how: Any) -> list[bytes]:
        """The file, or the pages as pictures. typst.TypstError: its words may hold the document's."""
        text = source if isinstance(source, bytes) else self._sources[source]
        made = self._compiler.compile(input=text, sys_inputs=inputs, **how)
        return made if isinstance(made, list) else [made or b""]


def _chosen(fonts: typst.Fonts, found: dict[str, Coverage]) -> tuple[list[str], dict[str, Coverage]]:
    """Whole families, ours first, until the bound; and the files that they are in."""
    faces: dict[str, list[str]] = {}
    for face in fonts.fonts():
        if face.path in found:
            faces.setdefault(face.family, []).append(face.path)
    endings = tuple(_PREFERRED.values())
    ours = {family for family, files in faces.items() if all(file.startswith(FONTS) for file in files)}
    order = sorted(faces, key=lambda family: (family not in ours, not family.endswith(endings), family))
    families, used, total = [], {}, 0
    for family in order:
        total += sum(os.path.getsize(file) for file in faces[family])  # noqa: PTH202
        if total > FONT_BYTES_MAX and family not in ours:
            total -= sum(os.path.getsize(file) for file in faces[family])  # noqa: PTH202
            continue
        families.append(family)
        used.update({file: found[file] for file in faces[family]})
    return families, used


def _sample(font: Coverage) -> str:
    """A character that the file has: the first that is no control and no space."""
    return next((chr(max(first, 0x21)) for first, last in font.ranges if last >= 0x21), " ")


def _read(name: str) -> bytes:
    with open(os.path.join(_FOLDER, name), "rb") as opened:  # noqa: PTH118, PTH123 - pathlib is not needed here
        return opened.read()
