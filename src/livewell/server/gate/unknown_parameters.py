"""A query parameter that the route does not have is refused.

A caller who writes maxage=1s believes that fresh data was asked for, and would never learn that the
parameter was ignored. The known parameters are those of the OpenAPI document.
"""

from __future__ import annotations

from fastapi import Request
from fastapi.routing import APIRoute

from livewell.server.answers.invalid import shown_name
from livewell.server.answers.problems import Problem


async def known_only(request: Request) -> None:
    """For routes of the API; pages may be called with whatever others add to a link."""
    route = request.scope.get("route")
    if not request.query_params or not isinstance(route, APIRoute) or not route.path.startswith("/v1/"):
        return
    operation = request.app.openapi()["paths"].get(route.path_format, {}).get(request.method.lower(), {})
    known = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
    for name in request.query_params:
        if name not in known:
            raise Problem(
                400,
                f"{shown_name(name)} is not known here.",
                word="invalid",
                field="query",
                allowed=", ".join(sorted(known)) or "no parameters",
            )
