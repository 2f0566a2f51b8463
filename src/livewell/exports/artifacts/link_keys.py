"""The keys of our own links: from the settings, or kept in the folder of the store.

    export_link_keys="b:<secret>,a:<secret>"     b signs; links of a are still good

To change a key, put a new one in front, and take the old one away an hour later: no link lives
longer. Without the setting, a folder store keeps a key in `link.keys`, 0600, made by whichever
process comes first. A bucket keeps none: there the setting is needed where links of S3 cannot be
made.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from livewell.errors import ConfigurationError
from livewell.exports.artifacts.draft import Draft, open_folder

KEYS_MAX = 2
SECRET_CHARS_MIN = 32
VARIABLE = "LIVEWELL_EXPORT_LINK_KEYS"
FILE = "link.keys"
_FILE_BYTES_MAX = 4_096
_ID = re.compile(r"[A-Za-z0-9_-]{1,16}")
_WANTED = (
    f"id:secret is wanted, or two of them with a comma between; an id has up to 16 letters, digits, _ or -, "
    f"a secret at least {SECRET_CHARS_MIN} characters. Make one with: openssl rand -hex 32"
)


@dataclass(frozen=True, slots=True)
class LinkKey:
    """One key, and the name by which a link says which it was signed with."""

    id: str
    secret: SecretStr


def parse_link_keys(text: str, *, where: str = VARIABLE) -> tuple[LinkKey, ...]:
    """The keys of "id:secret,id:secret". Raises ConfigurationError, which shows none of it."""
    keys = []
    for part in text.strip().split(","):
        name, colon, secret = part.strip().partition(":")
        if not colon or not _ID.fullmatch(name) or len(secret) < SECRET_CHARS_MIN or not secret.isprintable():
            raise ConfigurationError(f"{where}: {_WANTED}")
        keys.append(LinkKey(name, SecretStr(secret)))
    if len(keys) > KEYS_MAX or len({key.id for key in keys}) < len(keys):
        raise ConfigurationError(f"{where}: at most {KEYS_MAX} keys, each with an id of its own; {_WANTED}")
    return tuple(keys)


def keep_link_key(folder: Path) -> tuple[LinkKey, ...]:
    """The keys in this folder; the first process that asks makes one.

    The file has its name only once it is complete, and a name is given once: of two processes that
    come together one writes, and both read what is there.
    """
    try:
        text = _read(folder)
        if text is None:
            text = _make(folder)
    except OSError as error:
        raise ConfigurationError(
            f"the file {FILE} of the export store cannot be read or written: {os.strerror(error.errno or 0)}; "
            f"mend the rights of the folder, or set {VARIABLE}"
        ) from None
    return parse_link_keys(text, where=f"the file {FILE} of the export store")


def _make(folder: Path) -> str:
    draft = Draft(folder, (FILE,))
    try:
        draft.write_and_name(f"k{secrets.token_hex(4)}:{secrets.token_hex(32)}\n".encode())
    except FileExistsError:
        draft.abandon()
    except BaseException:
        draft.abandon()
        raise
    text = _read(folder)
    if text is None:
        raise FileNotFoundError(2, "it was removed at once")
    return text


def _read(folder: Path) -> str | None:
    with suppress(FileNotFoundError), open_folder(folder, ()) as root:
        descriptor = os.open(FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=root)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_mode & 0o077:
                raise ConfigurationError(
                    f"the file {FILE} of the export store may be read by others than its owner; "
                    "take a new key: remove the file, and every link that is out there ends"
                )
            return os.read(descriptor, _FILE_BYTES_MAX).decode("ascii", "replace")
        finally:
            os.close(descriptor)
    return None
