"""graphile-worker, batched: localQueue 1000, completeJobBatchDelay 0.

100 jobs at once (50 for jobs of 5 ms). The program is graphile.mjs.
"""

from __future__ import annotations

from bench.peers.npm import Node
from bench.system import System


def system(node: Node) -> System:
    """As a Node program."""
    return node.system("graphile")
