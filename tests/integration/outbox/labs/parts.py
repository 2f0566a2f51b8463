"""What labs share: the sink of a kind with its address in an environment of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from livewell.outbox.sink import Sink
from livewell.outbox.sinks.kind import SinkContext, Submit
from livewell.outbox.sinks.registry import SinkOptions, make_sink

PASSWORD = "s3cret-of-the-relay"  # noqa: S105 - of servers that live for a test
WRONG = "wr0ng-password"
KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def make(
    kind: str,
    address: str | None,
    options: Mapping[str, object] | None = None,
    *,
    submit: Submit | None = None,
    login: str = "",
) -> Sink:
    """A sink as a worker makes it: the address and the secrets stand in variables."""
    environment: Mapping[str, str] = {"SINK": address or "", "SINK_KEY": KEY, "SINK_LOGIN": login}
    declared = SinkOptions(kind, None if address is None else "env:SINK", options or {})
    return make_sink(declared, SinkContext(environment, ("127.0.0.1",), submit))


def program(name: str, *places: str) -> Path | None:
    """A server's program: beside this Python, or on the machine."""
    folders = [Path(sys.executable).parent, *map(Path, places), *map(Path, os.get_exec_path())]
    return next((folder / name for folder in folders if (folder / name).is_file()), None)
