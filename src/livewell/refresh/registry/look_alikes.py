"""Which types of an upstream could be mistaken for each other.

For example the yearly and the quarterly statement of a company: they repeat the same key and have
the same fields.

An answer of a type with a twin proves its key, but not its type. On a connection that has carried
another question it proves nothing (ADR 0011).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta

from livewell.refresh.definition.model import TypeDefinition
from livewell.refresh.result import Value
from livewell.refresh.validate.answer import validate


def has_twin(definition: TypeDefinition, others: Iterable[TypeDefinition]) -> bool:
    """True if this type would accept the recorded answer of another type of its upstream.

    What a transform accepts is not known here.
    """
    return definition.answer.transform is None and any(
        _accepts(definition, other)
        for other in others
        if other.name != definition.name and other.upstream == definition.upstream
    )


def _accepts(definition: TypeDefinition, other: TypeDefinition) -> bool:
    sample = other.sample
    recorded = datetime.combine(sample.recorded, time(), UTC) + timedelta(days=2)
    found = validate(definition, [sample.key], sample.body.encode(), content_type="application/json", now=recorded)
    return isinstance(found[sample.key], Value)
