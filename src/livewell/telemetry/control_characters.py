"""Characters that a terminal obeys instead of showing.

Text that comes from others must not hold them when it is printed (M6).

Escape sequences move the cursor, clear the screen and set the title. Bidirectional controls make a
line look different from what it is. Pure, and below everything else.
"""

from __future__ import annotations

import re

__all__ = ["CONTROLS", "escaped", "printable"]

# C0 but line feed and tab, DEL, C1; the bidirectional controls; half a surrogate pair, which no
# terminal can be sent.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with a replacement character for each of them."""
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def escaped(document: str) -> str:
    """The same JSON document with an escape for each of them: what it says stays the same."""
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", document)
