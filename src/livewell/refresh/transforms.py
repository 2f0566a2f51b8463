"""Transforms that a program registers: what the file of an odd type names."""

from __future__ import annotations

from collections.abc import Callable

from livewell.errors import ConfigurationError
from livewell.refresh.validate.answer import Transform


class Transforms(dict[str, Transform]):
    """By name."""

    def register(self, name: str) -> Callable[[Transform], Transform]:
        """The decorator behind app.transform()."""

        def decorate(function: Transform) -> Transform:
            if name in self:
                raise ConfigurationError(f"transform {name}: registered twice")
            self[name] = function
            return function

        return decorate
