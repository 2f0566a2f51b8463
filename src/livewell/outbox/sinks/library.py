"""The client library of a kind of sink, loaded when a sink is made.

A worker without the extra starts; only a sink that needs the library is refused, with the command
that installs it.
"""

from __future__ import annotations

import importlib
from typing import Any

from livewell.errors import ConfigurationError


def library(module: str, extra: str) -> Any:
    """A module of a client library; raises ConfigurationError where its extra is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigurationError(
            f"a sink of this kind needs {error.name or module}, which is not installed; "
            f"install it with: pip install 'livewell[{extra}]'"
        ) from error
