"""Log a browser in with a one-use link: /login#<token>, a button, a cookie.

The link alone changes nothing: whoever merely fetches it (a preview, a scanner) sends no fragment. The button posts the token; the answer is a cookie that scripts cannot read and that other sites'
requests do not carry.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import HTMLResponse, Response

from livewell.server.auth import COOKIE
from livewell.server.depends import TheState
from livewell.server.login import redeem
from livewell.server.problems import Problem, unknown_caller

router = APIRouter(tags=["login"])

_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Log in · Livewell</title>
<script type="module" src="/login.js"></script>
</head>
<body>
<main>
<h1>Livewell</h1>
<p id="words">This link logs this browser in, once.</p>
<button id="login" type="button">Log in</button>
</main>
</body>
</html>
"""
_SCRIPT = """// Post the token of the fragment; it never leaves the browser in an address.
const words = document.getElementById("words");
const button = document.getElementById("login");
const token = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
if (!token) {
  words.textContent = "This page needs a login link. Print one with: livewell keys login";
  button.hidden = true;
}
button.addEventListener("click", async () => {
  button.disabled = true;
  try {
    const answer = await fetch("/v1/login", {
      method: "POST",
      headers: {"content-type": "application/json"},
      body: JSON.stringify({token}),
    });
    if (answer.ok) {
      location.replace("/");
      return;
    }
    words.textContent = answer.status === 401
      ? "This link was used already, or is too old. Print a new one with: livewell keys login"
      : "The server did not take it. Try again in a moment.";
    button.disabled = answer.status === 401;
  } catch {
    words.textContent = "The server does not answer. Try again in a moment.";
    button.disabled = false;
  }
});
"""


class Link(BaseModel):
    """What stands after the # of the link."""

    model_config = ConfigDict(extra="forbid")

    token: Annotated[str, Field(max_length=200, repr=False)]


@router.get("/login", include_in_schema=False)
async def login_page() -> HTMLResponse:
    """The page with the button."""
    return HTMLResponse(_PAGE, headers={"Content-Security-Policy": _POLICY, "Cache-Control": "no-store"})


@router.get("/login.js", include_in_schema=False)
async def login_script() -> Response:
    """What the button does."""
    return Response(_SCRIPT, media_type="text/javascript", headers={"Cache-Control": "no-store"})


@router.post("/v1/login", status_code=204)
async def log_in(request: Request, state: TheState, body: Link) -> Response:
    """Use the link up; the browser gets its cookie."""
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise Problem(403, "Log in on our own page.", word="cross-site")
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
