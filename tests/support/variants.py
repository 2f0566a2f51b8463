"""Functions broken on purpose, and functions with a gate.

What a race test needs to prove that it can fail.

A variant is the function's own file with a few words replaced, installed in the test's database. If
the file no longer has those words the test fails at once, so a variant cannot silently become the
real thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

import livewell

GATE = 4242  # an advisory lock: who holds it keeps everybody waiting who comes to a gate
PACKAGES = Path(livewell.__file__).parent

Change = tuple[str, str]


def source(name: str) -> str:
    """The file of one function, whichever package it is in."""
    [path] = PACKAGES.rglob(f"sql/functions/**/{name}.sql")
    return path.read_text()


def changed(text: str, *changes: Change) -> str:
    """Replace every occurrence of each old text; each must be there.

    White space is folded: a run of it in the old text matches any run in the source, and inside a
    parenthesis it may come or go, so that wrapping a statement does not break the variants of it.
    """
    for old, new in changes:
        tight = re.sub(r"\s+(?=\))|(?<=\()\s+", "", old.strip())
        folded = r"\s+".join(re.escape(word) for word in tight.split())
        folded = folded.replace(r"\(", r"\(\s*").replace(r"\)", r"\s*\)")
        # White space around the words must be there, and stays: BEGIN and what follows a removed
        # line are two words.
        folded = (r"(?<=\s)" if old[:1].isspace() else "") + folded + (r"(?=\s)" if old[-1:].isspace() else "")
        text, found = re.subn(folded, new.replace("\\", r"\\"), text) if old.strip() else (text, 0)
        assert found, f"the source no longer contains {old!r}: mend the variant"
    return text


@contextmanager
def variant(dsn: str, name: str, *changes: Change) -> Iterator[None]:
    """Replace a function by a variant of itself for the length of the block."""
    original = source(name)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(changed(original, *changes).encode())
        try:
            yield
        finally:
            connection.execute(original.encode())


def gate_before(words: str) -> Change:
    """A place where the function waits while somebody holds the gate; it changes nothing else."""
    return words, f"PERFORM pg_advisory_xact_lock({GATE}); {words}"


SHUT = f"SELECT pg_advisory_lock({GATE})"
OPEN = f"SELECT pg_advisory_unlock({GATE})"
