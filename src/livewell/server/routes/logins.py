"""Log a browser in with a one-use link, and out again: /login#<token>, a button, a cookie.

The link alone changes nothing: a preview or a scanner that merely fetches it sends no fragment. The
button of the page (web/login/login.js) posts the token. The answer is a cookie that scripts cannot
read and that other sites' requests do not carry.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from livewell.db.acts import act_as
from livewell.server.answers.json_answer import JsonAnswer
from livewell.server.answers.problems import Problem, unknown_caller
from livewell.server.auth.caller import COOKIE
from livewell.server.auth.login_links import log_out, redeem
from livewell.server.depends import Anybody, TheState, from_where

router = APIRouter(tags=["login"])


class Link(BaseModel):
    """What stands after the # of the link."""

    model_config = ConfigDict(extra="forbid")

    token: Annotated[str, Field(max_length=200, repr=False)]


@router.post("/v1/login", status_code=204)
async def log_in(request: Request, state: TheState, body: Link) -> Response:
    """Use the link up; the browser gets its cookie."""
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise Problem(403, "Log in on our own page.", word="cross-site")
    act_as("nobody", from_where("page", request))  # the database knows who it is when the link is good
    login = await redeem(state.pools.api, body.token, state.settings)
    if login is None:
        raise unknown_caller("This link was used already, or is too old. Print a new one with: livewell keys login")
    answer = Response(status_code=204)
    answer.set_cookie(
        COOKIE,
        login,
        max_age=int(state.settings.login_seconds),
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return answer


class Scopes(BaseModel):
    """What the caller may do; see the table of scopes in docs/reference/http.md."""

    scopes: list[str]


@router.get("/v1/scopes", response_model=Scopes)
async def own_scopes(caller: Anybody) -> Any:
    """The caller's own scopes: a page offers only links that lead somewhere."""
    return JsonAnswer({"scopes": sorted(caller.scopes)}, headers={"Cache-Control": "no-store"})


@router.post("/v1/logout", status_code=204)
async def end_login(request: Request, state: TheState, caller: Anybody) -> Response:
    """End the login of this browser.

    Its cookie is invalid at once on this server, and on other servers as soon as they forget it.
    Keys and tokens cannot log out.
    """
    if caller.kind != "login" or caller.key_id is None:
        raise Problem(
            403, "Only a login by link can end itself; revoke a key with: livewell keys revoke", word="no-login"
        )
    act_as(caller.client, from_where("http", request))
    await log_out(state.pools.api, caller.key_id)
    state.auth.keys.forget(caller.key_id)
    answer = Response(status_code=204)
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer
