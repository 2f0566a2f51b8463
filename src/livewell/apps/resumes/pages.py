"""How many pages a PDF has: what the file itself says, not what somebody meant to make.

    startxref ──▶ table of objects ──▶ trailer /Root ──▶ /Pages ──▶ /Count

Only the structure that typst writes is read: a classic table, objects that are not compressed.
Text of a document cannot be mistaken for it, because every step is an offset from the table.
"""

from __future__ import annotations

import re

_TAIL = 200
_ENTRY = 20  # bytes of a row of the table


def count_pages(pdf: bytes) -> int:
    """The pages of a PDF. ValueError if it is not built as expected."""
    start = int(_found(rb"startxref\s+(\d+)\s+%%EOF\s*$", pdf[-_TAIL:]))
    size = int(_found(rb"^xref\s+0 (\d+)\s", pdf[start : start + 40]))
    rows = pdf.index(b"\n", pdf.index(b"\n", start) + 1) + 1
    trailer = pdf[rows + size * _ENTRY : len(pdf)]

    def value(number: bytes) -> bytes:
        at = int(pdf[rows + int(number) * _ENTRY :][:10])
        return pdf[at : pdf.index(b"endobj", at)]

    root = value(_found(rb"/Root (\d+) 0 R", trailer))
    pages = value(_found(rb"/Pages (\d+) 0 R", root))
    return int(_found(rb"/Type\s*/Pages\s*/Count (\d+)", pages))


def _found(pattern: bytes, text: bytes) -> bytes:
    match = re.search(pattern, text)
    if match is None:
        raise ValueError("this PDF is not built as expected")
    return match.group(1)
