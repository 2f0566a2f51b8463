"""What the rules of alerts could not judge: then it is not known that all is well. Pure."""

from __future__ import annotations

from livewell.server.state_sampler import parts
from livewell.telemetry.system_state import Document
from livewell.words import span

JUDGED_SECONDS = 300.0  # a worker evaluates every rule once a minute
_NAMED_MAX = 5


def unjudged(document: Document) -> list[str]:
    """Why some alert may be missing, in few words each; nothing if every rule was evaluated just now."""
    rules = parts(document, "alerts", "rules")
    ages = [one["evaluated_seconds"] for one in rules if one["evaluated_seconds"] is not None]
    failed = [str(one["name"]).replace("_", " ") for one in rules if one["failed"]]
    said = []
    if not ages:
        said.append("no rule of an alert was ever evaluated: a worker does that once a minute")
    elif min(ages) > JUDGED_SECONDS:
        said.append(f"no rule of an alert was evaluated for {span(min(ages))}: a worker does that once a minute")
    if failed:
        others = f" and {len(failed) - _NAMED_MAX} more" if len(failed) > _NAMED_MAX else ""
        said.append(f"these rules could not be evaluated: {', '.join(failed[:_NAMED_MAX])}{others}")
    return said
