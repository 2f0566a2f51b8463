"""Make a blocking method of an async one, with its parameters, answer and docstring.

class SyncAdmin(Mirror[QueueAdmin]):
    queues = blocking(QueueAdmin.queues)
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from livewell.sync.portal import Portal

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class Mirror(Generic[T]):
    """Stands in blocking code for an object whose methods are async.

    The object is asked for inside the loop.
    """

    def __init__(self, portal: Callable[[], Portal], target: Callable[[], T]) -> None:
        self._portal = portal
        self._target = target

    def run(self, make: Callable[[T], Coroutine[Any, Any, R]]) -> R:
        """Call something of the target's, and wait for it."""
        return self._portal().run(lambda _: make(self._target()))


def blocking(method: Callable[Concatenate[T, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[Mirror[T], P], R]:
    """The same method, for a Mirror of its object."""

    @wraps(method)
    def call(self: Mirror[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.run(lambda target: method(target, *args, **kwargs))

    return call
