"""The test kit: for your own tasks, and for ours.

A database per test, a clock you move, a worker that runs in your test (plugin, inline); and what
the fault tests use: a TCP proxy that breaks connections, child processes that are killed and
frozen, a pooler, an append-only log that counts from outside, a fake upstream that misbehaves on
demand, and the checkers of its log.
"""

from livewell.testing.checker import HistoryChecker
from livewell.testing.history import AppendLog, percentile
from livewell.testing.inline import InlineWorker, Ran, opened
from livewell.testing.proxy import TcpProxy
from livewell.testing.upstream import Behaviour, Call, FakeUpstream

__all__ = [
    "AppendLog",
    "Behaviour",
    "Call",
    "FakeUpstream",
    "HistoryChecker",
    "InlineWorker",
    "Ran",
    "TcpProxy",
    "opened",
    "percentile",
]
