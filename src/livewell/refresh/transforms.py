"""Transforms that a program registers. The file of an odd type names one."""

from __future__ import annotations

from collections.abc import Callable

from livewell.errors import ConfigurationError
from livewell.refresh.validate.answer import Transform


class Transforms(dict[str, Transform]):
    """The registered transforms, by name."""

    def register(self, name: str) -> Callable[[Transform], Transform]:
        """The decorator behind app.transform()."""

        def decorate(function: Transform) -> Transform:
            if name in self:
                raise ConfigurationError(f"transform {name}: registered twice")
            self[name] = function
            return function

        return decorate
