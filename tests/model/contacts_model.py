"""Contacts in a page of Python: who has which identities, who answers for whom, who is kept apart.

An identity is an e-mail ("e1"), of which a contact may have many, or an external id ("x1"), which
is stronger and of which a contact has one. A contact is named by the id that the database gave it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class ModelMerge:
    """What a merge moved: identities, and older ids."""

    winner: str
    loser: str
    moved: frozenset[str]
    aliases: frozenset[str]
    undone: bool = False


class ContactsModel:
    """What the database must say after each step."""

    def __init__(self) -> None:
        self.live: dict[str, set[str]] = {}
        self.births: dict[str, int] = {}
        self.gone: dict[str, str | None] = {}  # merged into; None: erased
        self.pairs: dict[frozenset[str], str] = {}  # waiting or apart
        self.erased: set[str] = set()
        self.merges: list[ModelMerge] = []

    def home(self, identity: str) -> str | None:
        """Who has it."""
        return next((one for one, known in self.live.items() if identity in known), None)

    def resolve(self, identities: Sequence[str], made: str | None) -> str | None:
        """Who it is; `made` names a contact that is made now, also if it is merged at once."""
        wanted = sorted(set(identities), key=lambda one: (one[0] != "x", one))  # the strongest first
        found = {one: home for one in wanted if (home := self.home(one)) is not None}
        new = [one for one in wanted if one not in found and one not in self.erased]
        if not found and len(new) < len(wanted):
            return None
        wanted = [one for one in wanted if one in found or one in new]
        anchor = self._anchor(found)
        if anchor is None:
            assert made is not None
            anchor = made
            self._bear(anchor)
        for one in new:
            if one[0] == "x" and any(other[0] == "x" for other in self.live[anchor]):
                assert made is not None
                self._bear(made)
                self.live[made].add(one)
            else:
                self.live[anchor].add(one)
        homes = {one: home for one in wanted if (home := self.home(one)) is not None}
        self._join(self._anchor(homes) or anchor, wanted)
        return self.home(wanted[0])

    def unmerge(self, merge: ModelMerge) -> bool:
        """Whether there is such a merge; what it brought goes back."""
        if merge not in self.merges:
            return False
        if merge.undone:
            return True
        winner = self.gone.pop(merge.loser)
        assert winner is not None
        back = merge.moved & self.live[winner]
        self.live[winner] -= back
        self.live[merge.loser] = set(back)
        self.gone |= {one: merge.loser for one in merge.aliases if self.gone.get(one) == winner}
        self.pairs[frozenset((winner, merge.loser))] = "apart"
        merge.undone = True
        return True

    def erase(self, contact: str) -> None:
        """With everything that it answers for."""
        live = contact if contact in self.live else self.gone[contact]
        if live is None:
            return
        ids = {live, *(one for one, into in self.gone.items() if into == live)}
        self.erased |= self.live.pop(live)
        self.gone |= dict.fromkeys(ids)
        self.pairs = {pair: state for pair, state in self.pairs.items() if live not in pair}
        self.merges = [one for one in self.merges if not {one.winner, one.loser} & ids]

    def decide(self, pair: frozenset[str], decision: str) -> None:
        """What somebody says about two."""
        if decision == "apart":
            self.pairs[pair] = "apart"
        else:
            self._merge(*pair)

    def _bear(self, contact: str) -> None:
        assert contact not in self.births
        self.live[contact] = set()
        self.births[contact] = len(self.births)

    def _anchor(self, found: dict[str, str]) -> str | None:
        """Of the strongest identity; the oldest of those."""
        strongest = min(found, key=lambda one: (one[0] != "x", self.births[found[one]]), default=None)
        return None if strongest is None else found[strongest]

    def _join(self, anchor: str, wanted: Sequence[str]) -> None:
        """Merge what may be merged: the contact of the strongest identity first, then the oldest."""
        sides = {home for one in wanted if (home := self.home(one)) is not None} - {anchor}
        strong = {side: any(one[0] == "x" and one in self.live[side] for one in wanted) for side in sides}
        for side in sorted(sides, key=lambda one: (not strong[one], self.births[one])):
            pair = frozenset((anchor, side))
            if self.pairs.get(pair) == "apart":
                continue
            if all(any(one[0] == "x" for one in self.live[contact]) for contact in pair):
                self.pairs.setdefault(pair, "waiting")
            else:
                anchor = self._merge(anchor, side)

    def _merge(self, one: str, other: str) -> str:
        """The older one stays."""
        winner, loser = sorted((one, other), key=self.births.__getitem__)
        aliases = frozenset(one for one, into in self.gone.items() if into == loser)
        self.merges.append(ModelMerge(winner, loser, frozenset(self.live[loser]), aliases))
        self.live[winner] |= self.live.pop(loser)
        self.gone |= dict.fromkeys((*aliases, loser), winner)
        moved: dict[frozenset[str], str] = {}
        for pair, state in self.pairs.items():
            now = frozenset(winner if one == loser else one for one in pair)
            if len(now) == 2 and moved.get(now) != "apart":
                moved[now] = state
        self.pairs = moved
        return winner
