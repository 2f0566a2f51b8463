"""Routes, one file per capability. What is served is what capabilities offer (capability.py)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fastapi import APIRouter
from fastapi.routing import APIRoute

from livewell.capability import Capability, built_in, capabilities
from livewell.errors import ConfigurationError

__all__ = ["routers"]

_API = "/v1/"
_PARAMETER = re.compile(r"\{[^}]*\}")


def routers() -> list[APIRouter]:
    """Those of every capability; raises ConfigurationError where two answer the same request.

    Below /v1 the gate asks who is calling. Outside of it anyone is answered, so a capability of
    another package may have no routes there: pages are served for it.
    """
    found, owners = [], dict[tuple[str, str], str]()
    for one in capabilities():
        for reference in one.routes:
            router = one.load("routes", reference)
            if not isinstance(router, APIRouter):
                raise ConfigurationError(
                    f"capability {one.name}: routes name {reference}, which is of type {type(router).__name__}, "
                    "not a fastapi.APIRouter"
                )
            for method, path in _answered(router):
                _check(one, method, path, owners)
            found.append(router)
    return found


def _answered(router: APIRouter) -> Iterator[tuple[str, str]]:
    """Method and path of every route."""
    for route in router.routes:
        if isinstance(route, APIRoute):
            yield from ((method, route.path) for method in sorted(route.methods or ()))


def _check(one: Capability, method: str, path: str, owners: dict[tuple[str, str], str]) -> None:
    if not path.startswith(_API) and one not in built_in():
        raise ConfigurationError(
            f"capability {one.name}: route {method} {path} is outside of {_API}, where nobody is asked for a key. "
            f"Put it below {_API}{one.name}/; an HTML page is offered as a page"
        )
    owner = owners.setdefault((method, _PARAMETER.sub("{}", path)), one.name)
    if owner != one.name:
        raise ConfigurationError(
            f"capability {one.name}: route {method} {path} is answered by capability {owner} already. "
            f"Put it below {_API}{one.name}/"
        )
