"""File names that every system can store, and no two alike.

People name their documents as they like, and a name reaches other people's disks: inside a ZIP, and
in the header of a download. What is left of it here has

- one form of each letter (NFC), so that two systems compare it in the same way,
- no folder: neither / nor \\ nor a drive, and no dots, hyphens or spaces at its beginning, no dots
  or spaces at its end,
- none of the signs that Windows refuses, and none of its device names (CON, LPT1 …),
- nothing that cannot be seen: no control characters, no marks that turn the direction of writing,
  no zero-width ones, no halves of characters,
- at most NAME_BYTES_MAX bytes of UTF-8, with the suffix kept.

Two names that some system takes for one (in another case, or in compatible characters) are
numbered: "name.pdf", "name (2).pdf".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

NAME_BYTES_MAX = 200  # most systems have 255; encrypted folders and " (2)" need some of it
_SUFFIX_BYTES_MAX = 20
_EMPTY = "document"

_FORBIDDEN = re.compile(r'[<>:"/\\|?*]')
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})
_SPACES = re.compile(r"\s+")
_DEVICE = re.compile(r"(?i)(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)[ ]*(\.|$)")


def safe_name(name: str) -> str:
    """The nearest name that every system can store."""
    text = unicodedata.normalize("NFC", name[: 16 * NAME_BYTES_MAX])
    text = _SPACES.sub(" ", text)
    text = "".join(sign for sign in text if unicodedata.category(sign) not in _UNSEEN)
    text = _FORBIDDEN.sub("_", unicodedata.normalize("NFC", text))
    text = _trimmed(text)
    if _DEVICE.match(text):
        text = f"_{text}"
    stem, suffix = _split(text)
    return _trimmed(_cut(stem, NAME_BYTES_MAX - len(suffix.encode())) + suffix) or _EMPTY


def safe_names(names: Iterable[str], *, taken: Iterable[str] = ()) -> list[str]:
    """Each name made safe, and different from all before it and from those that are taken."""
    used = {_key(name) for name in taken}
    found: list[str] = []
    for name in names:
        safe = safe_name(name)
        unique, number = safe, 1
        while _key(unique) in used:
            number += 1
            unique = _numbered(safe, number)
        used.add(_key(unique))
        found.append(unique)
    return found


def _numbered(name: str, number: int) -> str:
    stem, suffix = _split(name)
    sign = f" ({number})"
    return _cut(stem, NAME_BYTES_MAX - len((sign + suffix).encode())).rstrip(" .") + sign + suffix


def _key(name: str) -> str:
    """Alike for names that some file system takes for one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _trimmed(text: str) -> str:
    return text.lstrip(" .-").rstrip(" .")


def _split(name: str) -> tuple[str, str]:
    """Stem and suffix; a long suffix is no suffix."""
    stem, dot, suffix = name.rpartition(".")
    if dot and stem and 0 < len(suffix.encode()) < _SUFFIX_BYTES_MAX:
        return stem, dot + suffix
    return name, ""


def _cut(text: str, bytes_max: int) -> str:
    """So many bytes of UTF-8, and no half of a character."""
    return text.encode()[:bytes_max].decode(errors="ignore")
