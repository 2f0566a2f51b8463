"""Which peers can be measured here, and why the others cannot."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.peers import graphile, npm, pgboss
from bench.system import System

PYTHON = ("pgqueuer", "pgmq")
NODE = {"graphile": graphile.system, "pgboss": pgboss.system}
NAMES = ("pgqueuer", "graphile", "pgboss", "pgmq")


@dataclass(frozen=True, slots=True)
class Peers:
    """What was found; skipped has a reason for each name."""

    systems: dict[str, System]
    skipped: dict[str, str]


def find(wanted: Sequence[str], say: Callable[[str], None]) -> Peers:
    """Look for the peers, installing the Node ones into the cache; says loudly what is missing."""
    peers = Peers({}, {name: "not asked for" for name in NAMES if name not in wanted})
    for name in (name for name in PYTHON if name in wanted):
        try:
            peers.systems[name] = importlib.import_module(f"bench.peers.{name}").SYSTEM
            importlib.import_module(name)
        except ImportError as error:
            peers.systems.pop(name, None)
            peers.skipped[name] = f"{error}; install the extra: bench"
    _find_node([name for name in NODE if name in wanted], peers, say)
    for name, reason in peers.skipped.items():
        say(f"!!! peer {name} is SKIPPED, its ratios are null: {reason}")
    return peers


def _find_node(wanted: Sequence[str], peers: Peers, say: Callable[[str], None]) -> None:
    if not wanted:
        return
    say("installing the Node peers, unless they are in the cache …")
    try:
        node = npm.provide()
    except npm.NodeMissing as error:
        peers.skipped.update(dict.fromkeys(wanted, str(error)))
        return
    peers.systems.update({name: NODE[name](node) for name in wanted})
