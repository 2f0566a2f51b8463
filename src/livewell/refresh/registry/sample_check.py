"""Does the recorded sample of a type validate?

A file whose own example is refused would refuse every answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta

from livewell.errors import InvalidDefinition
from livewell.refresh.definition.model import TypeDefinition
from livewell.refresh.reasons import Reason
from livewell.refresh.result import Failure, Value
from livewell.refresh.validate.answer import Transform, validate

_MENDS = {
    Reason.WRONG_TYPE: "Change the column's type",
    Reason.OUT_OF_BOUNDS: "Change the column's bounds",
    Reason.MISSING_FIELD: 'Name the field with from = "…"',
    Reason.WRONG_KEY: "Change [sample] key, or key under [answer]",
    Reason.DUPLICATE_ROW: "Change row_key or kind",
}


def check_sample(definition: TypeDefinition, where: str, *, transforms: Mapping[str, Transform] | None = None) -> Value:
    """The sample as it would be stored.

    A transform is only known to a process that registered it.
    """
    sample = definition.sample
    recorded = datetime.combine(sample.recorded, time(), UTC) + timedelta(
        days=2
    )  # whatever the zone, by then it was recorded
    found = validate(
        definition,
        [sample.key],
        sample.body.encode(),
        content_type="application/json",
        now=recorded,
        transforms=transforms,
    )[sample.key]
    if isinstance(found, Value):
        return found
    again = f"or record a new sample with: livewell types sample {definition.name} {sample.key}"
    if not isinstance(found, Failure):
        raise InvalidDefinition(f"{where}: the recorded sample has no rows; {again}")
    place = f'column "{found.field}": the recorded sample has ' if found.field else "the recorded sample: "
    if found.reason is Reason.MISSING_FIELD and found.field:
        place = f'column "{found.field}": in the recorded sample '
    raise InvalidDefinition(
        f"{where}: {place}{found.detail} ({found.reason}). {_MENDS.get(found.reason, 'Change it')}, {again}"
    )
