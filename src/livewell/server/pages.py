"""Pages that are files, and the files of all pages, as they lie in livewell/web.

A page asks for its files under an address that holds their fingerprint, so a browser may keep them
for ever, and never mixes two versions. /livewell.js is the same module under an address that stays:
the one file that pages of other origins may load. Every answer forbids scripts, styles and
connections that are not this server's own. Pages of capabilities are served the same way, each
under the path that it names; /pages.json lists them for a navigation.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType

from fastapi import APIRouter, Request
from starlette.responses import Response

from livewell.capability import Page, capabilities
from livewell.db import embedded
from livewell.errors import ConfigurationError
from livewell.server.answers.json_answer import JsonAnswer
from livewell.server.answers.problems import not_found
from livewell.server.depends import TheState
from livewell.settings import Settings
from livewell.web import ASSETS, LOGIN

router = APIRouter(include_in_schema=False)

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
_FOR_EVER = "public, max-age=31536000, immutable"
_ASK_FIRST = "no-cache"
_NEVER = "no-store"
_COMMAND = "livewell keys login"
CLOSED = MappingProxyType(
    {
        "Content-Security-Policy": CSP,
        "X-Frame-Options": "DENY",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    }
)
_SHARED = MappingProxyType({"Cross-Origin-Resource-Policy": "cross-origin", "Access-Control-Allow-Origin": "*"})


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is sent. etag: quoted, of its content."""

    body: bytes
    media_type: str
    etag: str


@dataclass(frozen=True, slots=True)
class Shelf:
    """Everything that is served; read once, at the first request."""

    fingerprint: str
    files: Mapping[str, Asset]
    pages: Mapping[str, Asset]
    offered: Mapping[str, Asset]  # pages of capabilities, by path


@cache
def shelf() -> Shelf:
    """Read the files; those of a page are asked for under the fingerprint of all."""
    found = asset_files()
    together = hashlib.sha256()
    for name, path in found.items():
        together.update(name.encode() + b"\0" + path.read_bytes())
    fingerprint = together.hexdigest()[:16]
    place = f"/static/{fingerprint}".encode()

    def page(path: Path) -> Asset:
        return _asset(path, path.read_bytes().replace(b"{static}", place))

    return Shelf(
        fingerprint,
        {name: _asset(path, path.read_bytes()) for name, path in found.items()},
        {path.stem: page(path) for path in LOGIN.glob("*.html")},
        {one.path: page(one.file) for one in offered_pages()},
    )


def asset_files() -> dict[str, Path]:
    """Scripts, styles and pictures by the name under which they are served."""
    found: dict[str, Path] = {}
    for path in sorted(path for folder in ASSETS for path in folder.iterdir()):
        if path.suffix in _TYPES and path.suffix != ".html" and found.setdefault(path.name, path) != path:
            raise ConfigurationError(f"{path} and {found[path.name]} would have the same address: rename one")
    return found


def offered_pages() -> list[Page]:
    """The pages of every capability, in order."""
    return [page for one in capabilities() for page in one.pages]


def _asset(path: Path, body: bytes) -> Asset:
    return Asset(body, f"{_TYPES[path.suffix]}; charset=utf-8", f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def _send(request: Request, asset: Asset | None, keep: str, more: Mapping[str, str] | None = None) -> Response:
    if asset is None:
        raise not_found()
    headers = {**CLOSED, **(more or {}), "Cache-Control": keep, "ETag": asset.etag}
    known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    if asset.etag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    return Response(asset.body, headers={**headers, "Content-Type": asset.media_type})


@router.api_route("/login", methods=["GET", "HEAD"])
async def login(request: Request) -> Response:
    """The page that a login link leads to.

    The token is in the fragment of the link, and the browser sends it only when a button is
    pressed.
    """
    return _send(request, shelf().pages["login"], _NEVER)


@router.get("/login/how")
async def how_to_log_in(request: Request, state: TheState) -> JsonAnswer:
    """The command that prints a link for this server, but for its address.

    And how long a login lasts.
    """
    settings = state.settings
    command = _command(settings) if _is_here(request) else _COMMAND
    return JsonAnswer({"command": command, "login_seconds": settings.login_seconds}, headers={"Cache-Control": _NEVER})


def _command(settings: Settings) -> str:
    """On the embedded server its folder belongs to it.

    Elsewhere the command would begin a database of its own.
    """
    if settings.database_url is not None:
        return _COMMAND
    folder = (settings.data_dir or embedded.default_data_dir()).resolve()
    return f"LIVEWELL_DATA_DIR={shlex.quote(str(folder))} {_COMMAND}"


def _is_here(request: Request) -> bool:
    """A browser on this machine, with nobody between: nobody else is told a path of it."""
    passed_on = any(name in request.headers for name in ("forwarded", "x-forwarded-for", "via"))
    return not passed_on and request.client is not None and ip_address(request.client.host).is_loopback


def nothing_here(_: Request) -> Response:
    """For a person who asked for what is not there, or is not theirs to see.

    One and the same page.
    """
    page = shelf().pages["nothing"]
    headers = {**CLOSED, "Cache-Control": _NEVER, "Vary": "Accept", "Content-Type": page.media_type}
    return Response(page.body, 404, headers)


@router.get("/pages.json")
async def page_list() -> JsonAnswer:
    """The pages of capabilities.

    Where each is, its word in the navigation, the question it answers.
    """
    return JsonAnswer(
        {"pages": [{"path": one.path, "nav": one.nav, "title": one.title} for one in offered_pages()]},
        headers={"Cache-Control": _ASK_FIRST},
    )


def page_router() -> APIRouter:
    """One route for each page of a capability. Anybody may load it; what it shows needs a login."""
    found = APIRouter(include_in_schema=False)
    for one in offered_pages():
        found.add_api_route(one.path, _offered_page, methods=["GET", "HEAD"])
    return found


async def _offered_page(request: Request) -> Response:
    return _send(request, shelf().offered.get(request.url.path), _ASK_FIRST)


@router.api_route("/livewell.js", methods=["GET", "HEAD"])
async def module(request: Request) -> Response:
    """The module, for pages of your own."""
    return _send(request, shelf().files["livewell.js"], _ASK_FIRST, _SHARED)


@router.api_route("/static/{fingerprint}/{name}", methods=["GET", "HEAD"])
async def static(request: Request, fingerprint: str, name: str) -> Response:
    """A file of the pages.

    Under another fingerprint there is nothing: a page that was kept asks for its own version, or is
    loaded again.
    """
    return _send(request, shelf().files.get(name) if fingerprint == shelf().fingerprint else None, _FOR_EVER)
