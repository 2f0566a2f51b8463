"""Options in, a sink out.

    SinkOptions ──kind known?──▶ options checked ──▶ variables read ──▶ library there? ──▶ Sink, not yet open
                      └────────────────┴──────────────────┴──────────────────┴──▶ ConfigurationError

BUILT_IN is the closed list of kinds of this package. Other packages add kinds by entry points in
the group livewell.sinks; none may take the name of a built-in one. A kind's module is imported when
a sink of that kind is made, and its client library with it.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoints, entry_points
from types import MappingProxyType

from livewell.errors import ConfigurationError
from livewell.outbox.sink import Sink
from livewell.outbox.sinks.address import read_address
from livewell.outbox.sinks.kind import SinkContext, SinkKind, SinkParts
from livewell.outbox.sinks.options import read_options

GROUP = "livewell.sinks"  # of entry points

BUILT_IN = MappingProxyType(
    {
        kind: f"livewell.outbox.sinks.{kind}:KIND"
        for kind in ("file", "kafka", "nats", "null", "rabbitmq", "redis", "tasks", "webhook")
    }
)


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """How a sink is declared.

    address   env:NAME, the variable that holds the address; a literal address is refused
    options   of its kind
    """

    kind: str
    address: str | None = field(default=None, repr=False)  # somebody may have written the address itself here
    options: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}), repr=False)


def make_sink(declared: SinkOptions, context: SinkContext | None = None) -> Sink:
    """Make a sink; nothing is connected. Raises ConfigurationError that says what to write instead."""
    context = context or SinkContext()
    kind = find_kind(declared.kind)
    options = read_options(declared.kind, kind.options, declared.options)
    where = f"sink of kind {declared.kind}: address"
    if not kind.has_address and declared.address is not None:
        raise ConfigurationError(f"{where}: this kind has none; leave it out")
    address = read_address(declared.address, where, context.environment) if kind.has_address else None
    return kind.make(SinkParts(declared.kind, options, context, address))


def find_kind(name: str) -> SinkKind:
    """The kind of that name, of this package or of another; raises ConfigurationError."""
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        return _checked(getattr(importlib.import_module(module), attribute), f"sink kind {name}")
    return _of_another_package(name)


def kinds() -> tuple[str, ...]:
    """The names of all kinds: the built-in ones, then those of other packages."""
    return (*BUILT_IN, *sorted({entry.name for entry in _entries()} - set(BUILT_IN)))


def _of_another_package(name: str) -> SinkKind:
    entries = [entry for entry in _entries() if entry.name == name]
    if not entries:
        raise ConfigurationError(
            f"sink kind {name[:100]!r} is unknown; there are: {', '.join(kinds())}. "
            f"A package of another kind offers it as an entry point in the group {GROUP}"
        )
    packages = [entry.dist.name if entry.dist is not None else "an unknown package" for entry in entries]
    if len(entries) > 1:
        raise ConfigurationError(
            f"sink kind {name} is offered by {' and '.join(sorted(packages))}; remove one of them with: pip uninstall"
        )
    what = f"sink kind {name} (entry point {entries[0].value} of package {packages[0]})"
    mend = f"Repair or update the package, or remove it with: pip uninstall {packages[0]}"
    try:
        found = entries[0].load()
    except Exception as error:
        raise ConfigurationError(f"{what} cannot be loaded: {type(error).__name__}: {error}. {mend}") from error
    return _checked(found, what)


def _checked(found: object, what: str) -> SinkKind:
    if isinstance(found, SinkKind):
        return found
    raise ConfigurationError(f"{what} is of type {type(found).__name__}, not a livewell.outbox.sinks.kind.SinkKind")


def _entries() -> EntryPoints:
    return entry_points(group=GROUP)
