"""The OpenAPI document says everything that can be answered, and nothing that is thrown at it makes the server fail."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from tests.support.http import Web
from tests.support.web_types import STORED, apply_types

# Streams do not end, so they are not for this; their own tests are in test_streams.py.
FUZZ = (
    "--checks=not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
    "--phases=coverage,fuzzing",
    "--exclude-path-regex=/stream$",
    "--max-examples=15",
    "--seed=20261116",
    "--no-color",
    "--warnings=off",
    "--generation-database=none",
)


async def test_nothing_thrown_at_the_api_breaks_it(wire: Web) -> None:
    """schemathesis, as an operator.

    No 5xx, no status, content type or body that the document does not have.
    """
    await apply_types(wire.dsn, wire.state.settings)
    wire.rows(STORED)
    key = wire.key("view", "subscribe", "export", "operate")
    fuzzer = await asyncio.create_subprocess_exec(
        sys.executable.replace("/python", "/schemathesis"),
        "run",
        f"{wire.base}/v1/openapi.json",
        f"--header=Authorization: Bearer {key.text}",
        "--header=Connection: close",  # one is not read for a second after a 401 or 429
        *FUZZ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await asyncio.wait_for(fuzzer.communicate(), 900)

    assert fuzzer.returncode == 0, said.decode()[-6000:]


async def document(web: Web) -> dict[str, Any]:
    found: dict[str, Any] = (await web.client.get("/v1/openapi.json")).json()
    return found


async def test_the_document_needs_no_key_and_has_every_route(web: Web) -> None:
    """One path of each part of the API stands for the rest."""
    paths = (await document(web))["paths"]

    for path in (
        "/v1/sessions",
        "/v1/data/{type}/{key}",
        "/v1/types/{name}",
        "/v1/jobs/{id}",
        "/v1/dead/redrive",
        "/v1/login",
    ):
        assert path in paths


async def test_every_operation_documents_its_problems(web: Web) -> None:
    """As problem documents; the framework's own 422 is never sent."""
    for path, operations in (await document(web))["paths"].items():
        for method, operation in operations.items():
            answers = operation["responses"]
            assert {"400", "401", "429", "503"} <= set(answers), (method, path)
            assert "422" not in answers
            assert list(answers["429"]["content"]) == ["application/problem+json"]


async def test_every_route_below_v1_wants_a_caller(web: Web) -> None:
    """Whatever a route forgets: without a key nothing but the document, the login and signed links answers."""
    for path, operations in (await document(web))["paths"].items():
        for method in operations:
            if path in ("/v1/login", "/v1/download/{signed}"):
                continue
            answer = await web.client.request(
                method,
                path.format(
                    type="quote", key="AAPL", name="quote", id="64", job_id="64", session="0" * 36, schedule="nightly"
                ),
            )
            assert answer.status_code == 401, (method, path)


async def test_what_is_not_there_is_a_problem_document(web: Web) -> None:
    """Also outside /v1, and for methods that a path does not have."""
    client = web.as_key()
    nowhere, wrong = await client.get("/v1/nowhere"), await client.put("/v1/types")

    assert (nowhere.status_code, nowhere.headers["content-type"]) == (404, "application/problem+json")
    assert (wrong.status_code, wrong.headers["content-type"]) == (405, "application/problem+json")
