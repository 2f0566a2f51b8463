"""pg-boss: batchSize 1000, localConcurrency 2, bursts on (2 × 25 for jobs of 5 ms).

LISTEN/NOTIFY for the latency of an idle worker only. The program is pgboss.mjs.
"""

from __future__ import annotations

from bench.peers.npm import Node
from bench.system import System


def system(node: Node) -> System:
    """As a Node program."""
    return node.system("pgboss")
