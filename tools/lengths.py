"""How long lines are, and which are too long: `python -m tools.lengths`, a part of `make check`.

Code may have 120 columns, prose and SQL 100. The first line of a docstring is one sentence that may
not be broken (PEP 257): it may have 120. A line that cannot be broken is never too long: a table, a
drawing, an address, a link, a code span. For each kind of line there is a share that may be longer;
LIMITS is the only place where they are stated.

Not looked at: fixtures of old releases, pages that a program writes, and numbered SQL files, which
are never edited after their release.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.wrap_markdown import can_be_broken, prose

ROOT = Path(__file__).parents[1]
PYTHON = ("src", "tests", "bench", "examples", "tools")
OFFENDERS_MAX = 40  # printed of each limit

_DRAWING = re.compile(r"[─│▶◀├└]|\S {2,}\S")  # or a table: two words far apart
_UNTOUCHED = re.compile(r"tests/upgrade/\d|/\d{3}_\w+\.sql$|docs/reference/settings\.md$")


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `percent` of the lines of `kind` may have more than `columns`."""

    kind: str
    columns: int
    percent: float


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file. `fixed`: it cannot be broken."""

    kind: str
    place: str
    length: int
    fixed: bool


# A kind includes those that begin with it.
LIMITS = (
    Limit("Python", 120, 0.5),
    Limit("Python code", 120, 0.5),
    Limit("Python summary", 120, 0.1),
    Limit("Python prose", 100, 0.2),
    Limit("SQL", 100, 1.0),
    Limit("SQL", 120, 0.5),
    Limit("Markdown", 100, 1.0),
    Limit("Markdown", 120, 0.5),
)


def lines() -> Iterator[Line]:
    """Every line that is judged."""
    for folder in PYTHON:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not _UNTOUCHED.search(path.as_posix()):
                yield from _python(path)
    for path in sorted((ROOT / "src").rglob("*.sql")):
        if not _UNTOUCHED.search(path.as_posix()):
            yield from _sql(path)
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]):
        if not _UNTOUCHED.search(path.as_posix()):
            yield from _markdown(path)


def _python(path: Path) -> Iterator[Line]:
    """Docstrings and lines that are only a comment are prose; everything else is code.

    Tables and drawings of docstrings count, but are fixed.
    """
    text = path.read_text(encoding="utf-8")
    docstrings = _docstring_lines(text)
    told = docstrings | dict.fromkeys(_comment_lines(text), "Python prose")
    for number, line in enumerate(text.split("\n"), 1):
        kind = told.get(number, "Python code")
        fixed = _is_fixed(line) or (number in docstrings and _DRAWING.search(line.strip()) is not None)
        yield Line(kind, _place(path, number), len(line), fixed=fixed)


def _docstring_lines(text: str) -> dict[int, str]:
    """The numbers of all lines of docstrings, and the kind of each."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found: dict[int, str] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            told = node.body[0]
            found |= dict.fromkeys(range(told.lineno, (told.end_lineno or told.lineno) + 1), "Python prose")
            found[told.lineno] = "Python summary"
    return found


def _comment_lines(text: str) -> set[int]:
    """The numbers of lines that hold nothing but a comment."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {
        token.start[0]
        for token in tokens
        if token.type == tokenize.COMMENT and token.line[: token.start[1]].strip() == ""
    }


def _sql(path: Path) -> Iterator[Line]:
    """Comments and statements have one limit."""
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        yield Line("SQL", _place(path, number), len(line), fixed=_is_fixed(line))


def _markdown(path: Path) -> Iterator[Line]:
    """Paragraphs, list items and footnotes.

    Tables, code blocks and headings count, but are fixed.
    """
    text = path.read_text(encoding="utf-8")
    told = dict(prose(text))
    for number, line in enumerate(text.split("\n"), 1):
        fixed = number not in told or not can_be_broken(line)
        yield Line("Markdown", _place(path, number), len(line), fixed=fixed)


def _is_fixed(line: str) -> bool:
    """True for one long word, alone or behind a comment sign, and for an address."""
    return len(line.split()) <= 2 or "://" in line


def _place(path: Path, number: int) -> str:
    return f"{path.relative_to(ROOT)}:{number}"


def main() -> int:
    """Print the share of each limit, and the lines of those that are not held."""
    every = list(lines())
    failed = False
    for limit in LIMITS:
        kind = [line for line in every if line.kind.startswith(limit.kind)]
        long = [line for line in kind if line.length > limit.columns and not line.fixed]
        percent = 100 * len(long) / len(kind)
        held = percent <= limit.percent
        sys.stdout.write(
            f"{limit.kind:14} > {limit.columns}: {percent:6.2f} % of {len(kind):,} lines"
            f"{'' if held else f', more than {limit.percent} %'}\n"
        )
        if not held:
            failed = True
            for line in long[:OFFENDERS_MAX]:
                sys.stdout.write(f"    {line.place}: {line.length}\n")
            if len(long) > OFFENDERS_MAX:
                sys.stdout.write(f"    and {len(long) - OFFENDERS_MAX:,} more\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
