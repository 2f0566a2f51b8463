"""Tracebacks that may be logged and stored.

They are bounded, and hold no secrets, no values of variables and no paths of this machine.

They read as Python's own do. Where something must be left out, the error that was raised and the
frames of the user's own code stay longest: our frames around them go first, then those of
libraries, then causes far down the chain. A line says what was left out.
"""

from __future__ import annotations

import linecache
import os
import re
import sysconfig
import traceback
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType, TracebackType
from urllib.parse import urlsplit

from livewell.telemetry.redact import redact
from livewell.telemetry.secret_forms import TEXT_CHARS_MAX, Secrets, secrets_of

__all__ = [
    "TRACEBACK_BYTES_MAX",
    "has_cause",
    "known_secrets",
    "mask_known",
    "passed_users_code",
    "place_of",
    "traceback_of",
    "words",
]

TRACEBACK_BYTES_MAX = 8192

_MESSAGE_CHARS_MAX = 1000
_LINE_CHARS_MAX = 160
_NOTES_MAX, _NOTE_CHARS_MAX = 3, 300
_FRAMES_MAX, _INNERMOST = 16, 4
_CAUSES_MAX, _CAUSE_FRAMES_MAX = 6, 6
_GROUP_MAX, _GROUP_DEPTH_MAX, _GROUP_FRAMES_MAX = 5, 2, 6
_SECRET_CHARS_MIN = 8

_OURS = str(Path(__file__).parents[1])
_STDLIB = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_PACKAGES = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")
_SECRET_NAME = re.compile(r"(?i)(?:KEY|TOKEN|SECRET|PASS(?:WORD|WD|PHRASE)?|PWD|CREDENTIALS?|DSN|_URL)$")

_BECAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
_DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"

Frame = tuple[CodeType, int]


def traceback_of(error: BaseException, *, bytes_max: int = TRACEBACK_BYTES_MAX) -> str:
    """The error with its causes, as Python prints it."""
    text = _render(error, bytes_max, _FRAMES_MAX, 0, known_secrets())
    return text.encode(errors="replace").decode().replace("\x00", "\N{REPLACEMENT CHARACTER}")


def has_cause(error: BaseException) -> bool:
    """True if another error led to this one."""
    return _before(error)[0] is not None


def passed_users_code(error: BaseException) -> bool:
    """True if it came from or through code that is not ours."""
    return any(not _is_ours(frame.f_code) for frame, _ in traceback.walk_tb(error.__traceback__))


def place_of(error: BaseException) -> str:
    """Where it was raised: file:line in function; empty for one that never was."""
    frame = None
    for frame in traceback.walk_tb(error.__traceback__):  # noqa: B007 - the last one is wanted
        pass
    if frame is None:
        return ""
    code = frame[0].f_code
    return f"{Path(code.co_filename).name}:{frame[1]} in {code.co_name}"


def words(error: BaseException) -> str:
    """The error's text; people write exceptions whose text cannot be had."""
    try:
        return str(error)
    except Exception as unreadable:  # noqa: BLE001 - converted into words
        return f"(its text cannot be read: {type(unreadable).__name__})"


def mask_known(text: str, chars_max: int = TEXT_CHARS_MAX) -> str:
    """Hide secrets of the environment in a text, however they are written, and cut the text.

    A secret is the value of a variable whose name says so: by its looks alone nobody would know it.
    """
    return known_secrets().hide(text, chars_max)


def known_secrets() -> Secrets:
    """The values of those variables."""
    return secrets_of(*_environment_secrets())


def _environment_secrets() -> Iterator[str]:
    for name, value in os.environ.items():
        if not _SECRET_NAME.search(name):
            continue
        if "://" in value:
            value = _password(value)  # noqa: PLW2901 - an address itself is no secret
        if len(value) >= _SECRET_CHARS_MIN:
            yield value


def _password(address: str) -> str:
    try:
        return urlsplit(address).password or ""
    except ValueError:
        return ""


def _render(error: BaseException, bytes_max: int, frames_max: int, depth: int, secrets: Secrets) -> str:
    """The chain that ends in this error, the oldest cause first.

    Causes that do not fit are left out from the far end.
    """
    left = bytes_max
    kept: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    link = ""
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        block = _block(current, left, _CAUSE_FRAMES_MAX if kept else frames_max, depth, secrets)
        block = block if kept else _cut(block, left)
        size = len((block + link).encode(errors="replace"))
        if len(kept) == _CAUSES_MAX or size > left:
            kept.append("(earlier causes are left out)\n" + link)
            break
        kept.append(block + link)
        left -= size
        current, link = _before(current)
    return "".join(reversed(kept))


def _before(error: BaseException) -> tuple[BaseException | None, str]:
    if error.__cause__ is not None:
        return error.__cause__, _BECAUSE
    return (None, "") if error.__suppress_context__ else (error.__context__, _DURING)


def _block(error: BaseException, bytes_max: int, frames_max: int, depth: int, secrets: Secrets) -> str:
    """One error: frames, type, text and notes; of a group the first of its errors too."""
    lines = _frame_lines(error.__traceback__, frames_max)
    text = _plain(words(error), _MESSAGE_CHARS_MAX, secrets)
    kind = type(error)
    name = (
        kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    )
    lines.append(f"{name}: {text}" if text else name)
    notes = getattr(error, "__notes__", None)
    if isinstance(notes, list):
        lines += [_plain(note, _NOTE_CHARS_MAX, secrets) for note in notes[:_NOTES_MAX] if isinstance(note, str)]
    if isinstance(error, BaseExceptionGroup) and depth < _GROUP_DEPTH_MAX:
        share = bytes_max // (_GROUP_MAX + 1)
        for place, member in enumerate(error.exceptions[:_GROUP_MAX], start=1):
            lines.append(f"  [{place} of {len(error.exceptions)}]")
            inner = _render(member, share, _GROUP_FRAMES_MAX, depth + 1, secrets)
            lines += [f"    {line}" if line else "" for line in inner.splitlines()]
        if len(error.exceptions) > _GROUP_MAX:
            lines.append(f"  ({len(error.exceptions) - _GROUP_MAX} more of this group are left out)")
    return "\n".join(lines) + "\n"


def _frame_lines(tb: TracebackType | None, frames_max: int) -> list[str]:
    frames = _told_frames(tb)
    if not frames:
        return []
    lines = ["Traceback (most recent call last):"]
    kept = _worth_telling(frames, frames_max)
    before = -1
    for place in kept:
        if place - before > 1:
            lines.append(f"  ({place - before - 1} frames left out)")
        before = place
        code, line_number = frames[place]
        lines.append(_frame_text(code.co_filename, line_number, code.co_qualname))
    return lines


@lru_cache(maxsize=2048)  # source lines are read and redacted once; a failure that repeats then takes 0.3 ms
def _frame_text(filename: str, line_number: int, function: str) -> str:
    text = f'  File "{_short(filename)}", line {line_number}, in {function}'
    source = _plain(linecache.getline(filename, line_number).strip(), _LINE_CHARS_MAX, known_secrets())
    return f"{text}\n    {source}" if source else text


def _told_frames(tb: TracebackType | None) -> list[Frame]:
    """Without our own frames that led to the user's code; an error all of our own keeps them."""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(tb)]
    first = next((place for place, (code, _) in enumerate(frames) if not _is_ours(code)), 0)
    return frames[first:]


def _worth_telling(frames: list[Frame], frames_max: int) -> list[int]:
    """Which ones stay: the innermost, then the user's own, then the rest, from the inside out."""
    if len(frames) <= frames_max:
        return list(range(len(frames)))
    inside_out = range(len(frames) - 1, -1, -1)
    users = [place for place in inside_out if _is_users(frames[place][0])]
    wanted = dict.fromkeys([*inside_out[:_INNERMOST], *users, *inside_out])
    return sorted(list(wanted)[:frames_max])


def _is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(_OURS)


def _is_users(code: CodeType) -> bool:
    name = code.co_filename
    return not (name.startswith(("<", _OURS, *_STDLIB)) or _PACKAGES.match(name))


def _short(filename: str) -> str:
    """Enough to find the file, and nothing of where this machine keeps it."""
    within = _PACKAGES.sub("", filename)
    if within != filename:
        return within
    for folder in (str(Path.cwd()), str(Path(_OURS).parent), *_STDLIB):
        if filename.startswith(folder + os.sep):
            return filename[len(folder) + 1 :]
    return "/".join(Path(filename).parts[-2:])


def _plain(text: str, chars_max: int, secrets: Secrets) -> str:
    """Redacted before it is cut: half a secret does not look like one."""
    hidden = redact(secrets.hide(text))
    return hidden if len(hidden) <= chars_max else hidden[:chars_max] + "… (cut)"


def _cut(block: str, bytes_max: int) -> str:
    """Whole lines from both ends: the beginning says where it began, the end what it is."""
    data = block.encode(errors="replace")
    if len(data) <= bytes_max:
        return block
    note = "  (lines left out)\n"
    third = (bytes_max - len(note)) // 3
    head = data[:third].decode(errors="ignore")
    tail = data[-2 * third :].decode(errors="ignore")
    return head[: head.rfind("\n") + 1] + note + tail[tail.find("\n") + 1 :]
