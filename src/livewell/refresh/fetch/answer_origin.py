"""Is this the answer to our question?

HTTP/1.1 does not say, so an answer on a shared connection has to prove it (ADR 0011).

    alone on its connection ──▶ believed
    shared ──a row repeats a key that was asked, or a rate wall──▶ believed
       └──anything else──▶ Unproven for all keys; the connection carries nothing more

A connection carries questions of one family only, and no key twice. So an answer that repeats a key
that was asked cannot be the answer to another question. A rate wall is believed in any case: it
only makes us slower, and not for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from livewell.outbound import Share
from livewell.refresh.definition.model import TypeDefinition, UpstreamDefinition
from livewell.refresh.reasons import Reason
from livewell.refresh.result import Failure, Forgotten, Results, Unproven, Value


@dataclass(frozen=True, slots=True)
class Connection:
    """The connection that an answer, or the head of one, came on."""

    alone: bool  # it had carried no other question
    seen: str  # what came on it, in words
    retire: Callable[[], None] = field(default=lambda: None, repr=False)  # ask nothing more on it


def share_of(definition: TypeDefinition, upstream: UpstreamDefinition, keys: Sequence[str]) -> Share | None:
    """Which other calls may use the connection of this one.

    None where no answer could prove its question.

    What a transform makes of an answer may hold keys that the upstream never said.
    """
    if definition.answer.key is None or definition.answer.transform is not None:
        return None
    batch = definition.fetch.batch
    call = batch.call if batch is not None and len(keys) > 1 else definition.fetch.call
    family = repr((upstream.base_url, call.path, call.query))  # all of the question but its keys
    return Share(family, frozenset(keys))


def check_proof(results: Results, connection: Connection | None) -> Results:
    """The results if they may be believed, otherwise Unproven for every key.

    No connection: no answer came, nothing is to be proven.
    """
    if connection is None or connection.alone or _is_proven(results):
        return results
    connection.retire()
    return dict.fromkeys(results, Unproven(f"{connection.seen} on a connection that had carried other questions"))


def _is_proven(results: Results) -> bool:
    return any(
        isinstance(result, Value | Forgotten) or (isinstance(result, Failure) and result.reason is Reason.RATE_WALL)
        for result in results.values()
    )
