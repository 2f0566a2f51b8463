"""The other outbox: whether it can be measured here, and if not, why."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from bench.system import System

NAME = "faststream-outbox"


def find(say: Callable[[str], None]) -> tuple[dict[str, System], dict[str, str]]:
    """The peers that are there, and why the others are not; says loudly what is missing."""
    try:
        return {NAME: importlib.import_module("bench.peers.faststream_outbox").SYSTEM}, {}
    except ImportError as error:
        reason = f"{error}; install the extra: bench"
    say(f"!!! peer {NAME} is SKIPPED, its ratios are null: {reason}")
    return {}, {NAME: reason}
