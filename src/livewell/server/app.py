"""The application: routes in one list, behind the gate.

Errors are problem documents, and the OpenAPI document describes all of it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi import Depends, FastAPI
from starlette.types import ASGIApp

from livewell.capability import capabilities
from livewell.server.answers import problems
from livewell.server.answers.json_answer import JsonAnswer
from livewell.server.answers.problems import ProblemDocument
from livewell.server.dashboard.frame import Frame
from livewell.server.gate.gate import Gate
from livewell.server.gate.unknown_parameters import known_only
from livewell.server.pages import nothing_here, page_router
from livewell.server.process import ServerProcess
from livewell.server.routes import routers
from livewell.version import VERSION

# What any route may answer besides its own: a problem document each.
_PROBLEMS = {
    400: "The request is wrong; `field` says where.",
    401: "No key or token, or not a good one.",
    403: "The caller may not do this.",
    404: "There is no such thing, or it is somebody else's.",
    408: "The body did not arrive in time.",
    411: "The length of the body is not stated.",
    413: "The body is too large.",
    429: "Too many requests; Retry-After says when.",
    431: "The head of the request is too long.",
    503: "The server is busy or has lost its database; Retry-After says when.",
}


def create_app() -> FastAPI:
    """The application without its gate, for code that adds routes to it; serve gated(app, state).

    It holds nothing of a server: any number of them may use one application.
    """
    app = FastAPI(
        title="Livewell",
        version=VERSION,
        description="Fresh data for whoever is watching, and the jobs that keep it fresh.",
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        default_response_class=JsonAnswer,
        redirect_slashes=False,
        dependencies=[Depends(known_only)],
        responses={status: {"description": text, "model": ProblemDocument} for status, text in _PROBLEMS.items()},
    )
    app.state.frame = Frame(capabilities())
    problems.install(app, nothing_here)
    for router in routers():
        app.include_router(router)
    app.include_router(page_router())
    app.router.routes.extend(app.state.frame.routes())
    plain = app.openapi
    app.openapi = cache(lambda: _honest(plain()))  # type: ignore[method-assign] # how FastAPI documents it
    _prepare(app)
    return app


def gated(app: FastAPI, state: ServerProcess) -> ASGIApp:
    """What a server runs."""
    return Gate(app, state, app.state.frame)


def _prepare(app: FastAPI) -> None:
    """Look for a path that no route has, so that FastAPI makes the validators of all routes now.

    It would make those of a router when a request first comes to it: 240 ms in all, in which the
    server answers nobody, not even a health check (F-S10).
    """
    scope = {"type": "http", "method": "GET", "path": "/\0", "root_path": "", "headers": [], "query_string": b""}
    for route in app.router.routes:
        route.matches(dict(scope))


def _honest(document: dict[str, Any]) -> dict[str, Any]:
    """FastAPI documents a 422 that we never send, and problems as plain JSON."""
    for operations in document["paths"].values():
        for operation in operations.values():
            answers = operation["responses"]
            answers.pop("422", None)
            for status, answer in answers.items():
                content = answer.get("content", {})
                if int(status) >= 400 and "application/json" in content:
                    content["application/problem+json"] = content.pop("application/json")
    schemas = document.get("components", {}).get("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    document.setdefault("components", {})["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API key (lw_…) or a JSON Web Token."}
    }
    document["security"] = [{"bearer": []}]
    return document
