"""What contacts answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self
from uuid import UUID

Outcome = Literal["found", "created", "added", "merged", "conflict", "blocked", "erased"]
Decision = Literal["merge", "apart"]
Merges = Literal["auto", "ask", "never"]


@dataclass(frozen=True, slots=True)
class Resolved:
    """Who it is, and what had to be done to know it.

    contact    None only if every identity is blocked, or belongs to a person who was erased
    outcome    found: nothing was written. conflict: a person has to decide, see conflicts
    merged     ids of contacts that this one answers for from now on
    conflicts  pairs that wait for a person
    blocked    types of identities that were left out: their values are no identities
    erased     types of identities that were left out: their owner was erased
    """

    contact: UUID | None
    outcome: Outcome
    added: int = 0
    merged: tuple[UUID, ...] = ()
    conflicts: tuple[int, ...] = ()
    blocked: tuple[str, ...] = ()
    erased: tuple[str, ...] = ()

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Self:
        """From the document of resolve_contact."""
        return cls(
            contact=UUID(answer["contact"]) if answer["contact"] else None,
            outcome=answer["outcome"],
            added=answer["added"],
            merged=tuple(UUID(one) for one in answer["merged"]),
            conflicts=tuple(answer["conflicts"]),
            blocked=tuple(answer["blocked"]),
            erased=tuple(answer["erased"]),
        )
