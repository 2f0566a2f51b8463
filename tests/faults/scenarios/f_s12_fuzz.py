"""F-S12: schemathesis, five minutes as each kind of caller.

Everything that the OpenAPI document names, with whatever it can think of.

Judged: no answer 5xx, and none whose status, content type or body the document does not have.
Streams are left out: they do not end.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

from tests.faults.http_support import Site, open_site
from tests.faults.scenario import Findings, Scale

CODE = "F-S12"
TITLE = "schemathesis as each kind of caller"

OPTIONS = (
    "--checks=not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
    "--exclude-path-regex=/stream$",
    "--continue-on-failure",
    "--no-color",
    "--warnings=off",
    "--generation-database=none",
)
FULL = ("--phases=coverage,fuzzing", "--max-time=300")
SHORT = ("--phases=fuzzing", "--max-examples=3")  # so many, not so long: on a busy machine five seconds are none
SHORT_CALLER = "public key"  # tests/integration/server/test_openapi.py has an operator in `make test`
SECONDS_MAX = 900.0
GENERATED = re.compile(r"([\d,]+) generated")


async def run(scale: Scale) -> Findings:
    """One caller after another.

    A database for all, so that what one leaves behind is there for the next.
    """
    findings = Findings()
    async with open_site(scale) as site:
        for name, bearer in callers(site).items():
            if scale.full or name == SHORT_CALLER:
                await _throw(findings, scale, f"{site.base}/v1/openapi.json", name, bearer)
    return findings


def callers(site: Site) -> dict[str, str]:
    """Everybody there is, and nobody."""
    return {
        "nobody": "",
        "public key": site.key(public=True).text,
        "view": site.key("view").text,
        "subscribe": site.key("view", "subscribe").text,
        "bound to a type": site.key("view", "subscribe", types=["quote"]).text,
        "operate": site.key("view", "subscribe", "operate").text,
        "token": site.token("ann", scope="view subscribe operate"),
    }


async def _throw(findings: Findings, scale: Scale, document: str, name: str, bearer: str) -> None:
    header = [f"--header=Authorization: Bearer {bearer}"] if bearer else []
    fuzzer = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        document,
        f"--seed={scale.seed}",
        *header,
        *OPTIONS,
        *(FULL if scale.full else SHORT),
        cwd=scale.folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await asyncio.wait_for(fuzzer.communicate(), SECONDS_MAX)
    except TimeoutError:
        fuzzer.kill()
        await fuzzer.wait()
        findings.check(False, f"{name}: did not end within {SECONDS_MAX:g} s")
        return
    text = said.decode()
    cases = sum(int(found.replace(",", "")) for found in GENERATED.findall(text))
    findings.fired += cases
    findings.figures[name.replace(" ", "_")] = cases
    findings.check(fuzzer.returncode == 0 and cases > 0, f"{name}: {text[-3000:]}")
