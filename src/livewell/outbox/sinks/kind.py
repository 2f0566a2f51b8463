"""What a kind of sink is, and what its sinks are made from.

Another package offers a kind with an entry point in the group livewell.sinks: the entry point's
name is the name of the kind, and it leads to a SinkKind.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from livewell.outbox.sink import Sink
from livewell.outbox.sinks.address import Address, read_address
from livewell.queue.enqueue import Request

Submit = Callable[[Sequence[Request]], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class SinkContext:
    """What a sink may need of the program that it runs in.

    environment     where the variables are read that options name
    private_hosts   hosts on our own network that a webhook may call (outbound_private_hosts)
    submit          enqueues jobs, all or none: Enqueuer.enqueue of the app
    """

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    private_hosts: tuple[str, ...] = ()
    submit: Submit | None = None


@dataclass(frozen=True, slots=True)
class SinkParts:
    """What one sink is made from: checked options, and its address if its kind has one."""

    kind: str
    options: Any
    context: SinkContext
    address: Address | None = None

    def where(self) -> Address:
        """The address, for a kind that has one."""
        if self.address is None:
            raise AssertionError(f"a sink of kind {self.kind} was made without an address")
        return self.address

    def secret(self, option: str, reference: str) -> Address:
        """The value of the variable that an option names."""
        return read_address(reference, f"sink of kind {self.kind}: option {option}", self.context.environment)


@dataclass(frozen=True, slots=True)
class SinkKind:
    """A kind of receiver.

    options       a pydantic model; what is not in it is refused
    make          the sink's class, or a function; must not connect
    has_address   False for what is not reached by a network
    """

    options: type[BaseModel]
    make: Callable[[SinkParts], Sink]
    has_address: bool = True
