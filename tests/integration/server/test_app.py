"""The application: complete before the first request comes."""

from __future__ import annotations

import pydantic
import pytest

from livewell.server.app import create_app
from tests.support.http import Web


async def test_no_request_waits_until_routes_are_made(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """FastAPI would make the validators of a router when a request first comes to it (F-S10)."""
    web.application._app = create_app()
    made: list[object] = []
    plain = pydantic.TypeAdapter.__init__

    def counted(self: object, *given: object, **options: object) -> None:
        made.append(given[0])
        plain(self, *given, **options)  # type: ignore[arg-type] # whatever it takes

    monkeypatch.setattr(pydantic.TypeAdapter, "__init__", counted)
    assert (await web.client.get("/healthz")).status_code == 200
    assert (await web.as_key("operate", "view").get("/v1/types")).status_code == 200
    assert (await web.client.get("/nowhere")).status_code == 404
    assert made == []
