"""Words and values of exports that the whole package shares. Pure.

waiting ──▶ running ──▶ finished ──▶ expired (by the clock), deleted (by its user)
   ▲           ├──fails, is tried again──▶ waiting
   │           └──fails for good──▶ failed
   └───────────┴──cancelled by its user or an operator──▶ cancelled
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from livewell.exports.zip.archive import Member

QUEUE = "exports"
KIND = "export.render"
BATCH_MAX = 10  # documents; request_exports refuses more
OPEN_STATES = frozenset({"waiting", "running"})

# Why an export failed: a closed list, for users, rules and metrics. What mends it is on the page
# operations/alerts/exports_failing.
REASONS: Mapping[str, str] = {
    "unsupported_character": "no font here has one of its characters",
    "bad_document": "the document is not what its kind wants",
    "bad_image": "an image of it cannot be used",
    "missing_alt_text": "an image of it has no text for those who cannot see it",
    "no_title": "it has no title, which an accessible document needs",
    "template": "the template cannot be used with it",
    "too_large": "the file would be larger than one file may be",
    "deadline": "rendering it took too long",
    "memory": "rendering it took too much memory",
    "died": "the rendering process died",
    "store_unreachable": "the store of the files does not answer",
    "store_full": "the store of the files is full",
    "quota": "the user's files take all the room there is for them",
    "document_gone": "the document, or this version of it, was deleted",
    "library_missing": "a worker lacks a library; install livewell[exports]",
    "lost": "every worker that took it was lost",
    "cancelled": "it was cancelled",
    "internal": "something else; the log of the worker has it",
}
# Repeating these gives the same answer: the export fails at once.
DOCUMENT_REASONS = frozenset(
    {
        "unsupported_character",
        "bad_document",
        "bad_image",
        "missing_alt_text",
        "no_title",
        "template",
        "too_large",
        "document_gone",
    }
)
# These may be chance: they are tried once more, and then fail for good.
TWICE_REASONS = frozenset({"deadline", "memory"})


@dataclass(frozen=True, slots=True)
class Requested:
    """What became of a request: made, same (an unfinished one stands for it), or known (asked with this id before)."""

    id: UUID
    answer: str
    state: str
    seq: int


@dataclass(frozen=True, slots=True)
class RequestedBatch:
    """A batch and its exports, in the order in which they were asked for."""

    id: UUID
    exports: tuple[Requested, ...]


@dataclass(frozen=True, slots=True)
class BatchFiles:
    """What the ZIP of a batch is made of. `counts`: how many exports by state."""

    id: UUID
    members: tuple[Member, ...]
    exports: tuple[UUID, ...]  # of those that have a file
    counts: Mapping[str, int]

    @property
    def complete(self) -> bool:
        """True if every export has its file."""
        return len(self.exports) == len(self.members)


Document = dict[str, Any]
