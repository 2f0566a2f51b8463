"""Which things belong together, by pairs that were said to: the oldest oracle there is."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class UnionFind(Generic[T]):
    """Sets that only ever grow together."""

    def __init__(self) -> None:
        self._parent: dict[T, T] = {}

    def join(self, things: Iterable[T]) -> None:
        """All of these are one."""
        roots = [self.root(one) for one in things]
        for one in roots[1:]:
            self._parent[self.root(one)] = self.root(roots[0])

    def root(self, one: T) -> T:
        """The same for all that belong together."""
        self._parent.setdefault(one, one)
        while self._parent[one] != one:
            self._parent[one] = self._parent[self._parent[one]]
            one = self._parent[one]
        return one

    def sets(self) -> set[frozenset[T]]:
        """Everything that was named, in its sets."""
        found: dict[T, set[T]] = {}
        for one in list(self._parent):
            found.setdefault(self.root(one), set()).add(one)
        return {frozenset(members) for members in found.values()}
