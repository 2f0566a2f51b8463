"""F-D15: a redirect to loopback, and registry rows that point inside.

F-D16: certificates that prove nothing.

The workers may call 127.0.0.1, where the upstream is, and localhost for F-D16. Servers of the
scenario's own listen where nobody may go and count who comes. The upstream's row is changed under
the running workers to every forbidden place; the keys fail with the reason refused_address (tls),
nothing is dialled, nothing is sent, and when the row is right again so is the data.

What happens without each of these: tests/integration/outbound/test_guard.py and test_tls.py.
"""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from functools import partial
from pathlib import Path

from livewell.refresh.definition.document import read
from livewell.refresh.registry.apply import apply
from tests.faults.refresh_app import ATTENTIVE
from tests.faults.refresh_fleet import CREDENTIAL, RefreshFleet, open_refresh_fleet
from tests.faults.scenario import Findings, Scale, Scenario
from tests.integration.outbound.hostile import HostileServer, answering

KEYS = 3
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n[]"
REDIRECT = "HTTP/1.1 {code} Found\r\nLocation: {where}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


async def run_addresses(scale: Scale) -> Findings:
    """Every forbidden place, one after the other."""
    findings = Findings()
    async with (
        HostileServer(answering(PLAIN)) as inner,
        open_refresh_fleet(scale) as market,
    ):
        await market.workers(scale.pick(1, 2), env={ATTENTIVE: "1"})
        keys = market.symbols(KEYS)
        market.watch("quote", keys)
        await market.until_fresh(findings, 40)
        outside = [
            f"http://localhost:{inner.port}",
            f"http://127.0.0.2:{inner.port}",
            f"http://2130706433:{inner.port}",
            "http://169.254.169.254/latest",
            "http://10.0.0.1",
            f"https://metadata.google.internal:{inner.port}",
        ]
        for place in outside * scale.pick(1, 5):
            findings.fired += await _fail_at(market, findings, keys, place, {"refused_address"})
        for code in (301, 302, 307, 308) if scale.full else (302,):
            for where in (f"http://127.0.0.1:{inner.port}/", f"http://localhost:{inner.port}/", "file:///etc/passwd"):
                answer = REDIRECT.format(code=code, where=where).encode()
                async with HostileServer(answering(answer)) as upstream:
                    findings.fired += await _fail_at(market, findings, keys, upstream.url, {"status"})
                    findings.check(upstream.connections > 0, "the redirecting upstream was never called")
        await _mend(market, findings, keys)
        ruling = market.judge(findings)
        findings.check(inner.connections == 0, f"{inner.connections} connections to a place that is forbidden")
        counts = market.counts()
        findings.figures = {
            "forbidden_connections": inner.connections,
            "refused": counts["refused_address"],
            "redirects_not_followed": counts["status"],
            **ruling.figures(),
        }
    return findings


async def run_certificates(scale: Scale) -> Findings:
    """Expired, not yet valid, for another host, of nobody's authority.

    And a good one, to see that the rest is right.
    """
    if shutil.which("openssl") is None:
        return Findings(skipped="openssl is needed to make certificates")
    findings = Findings()
    authority = await asyncio.to_thread(_authority, scale.folder, "ours")
    stranger = await asyncio.to_thread(_authority, scale.folder, "stranger")
    always = ("20200101000000Z", "20991231235959Z")
    bad = {
        "expired": (authority, "localhost", ("20200101000000Z", "20210101000000Z")),
        "early": (authority, "localhost", ("20980101000000Z", "20991231235959Z")),
        "other_host": (authority, "api.example.com", always),
        "stranger": (stranger, "localhost", always),
    }
    async with open_refresh_fleet(scale, outbound_private_hosts="127.0.0.1,localhost") as market:
        await market.workers(1, env={ATTENTIVE: "1", "SSL_CERT_FILE": str(authority / "ca.pem")})
        keys = market.symbols(KEYS)
        market.watch("quote", keys)
        await market.until_fresh(findings, 40)
        sent = 0
        for name, (signer, host, dates) in list(bad.items()) * scale.pick(1, 5):
            tls = await asyncio.to_thread(_certificate, signer, name, host, *dates)
            async with HostileServer(answering(PLAIN), tls=tls) as server:
                place = f"https://localhost:{server.port}"
                findings.fired += await _fail_at(market, findings, keys, place, {"tls"})
                sent += len(server.requests)
        findings.check(sent == 0, f"{sent} requests were sent to a server that proved nothing")
        good = await asyncio.to_thread(_certificate, authority, "good", "localhost", *always)
        async with HostileServer(answering(PLAIN), tls=good) as server:
            await _fail_at(market, findings, keys, f"https://localhost:{server.port}", {"empty"})
            findings.check(len(server.requests) > 0, "the good certificate was refused too: nothing was shown")
        await _mend(market, findings, keys)
        ruling = market.judge(findings)
        findings.figures = {"insecure_requests": sent, "refused": market.counts()["tls"], **ruling.figures()}
    return findings


async def _fail_at(market: RefreshFleet, findings: Findings, keys: list[str], place: str, reasons: set[str]) -> int:
    """Point the upstream there, demand a key.

    Answers how many failures of these reasons were counted.
    """
    await _point(market, place)
    before = market.counts()
    reading = await market.app.get("quote", keys[0], max_age=0, wait="20s")
    findings.check(
        reading.reason in reasons, f"{place}: the reason is {reading.reason} ({reading.error}), not {reasons}"
    )
    await market.until_quiet(findings)
    after = market.counts()
    _forgive(market)
    return sum(after[reason] - before[reason] for reason in reasons)


async def _point(market: RefreshFleet, place: str) -> None:
    """As an operator whose own settings would allow it; what the workers may do is in theirs."""
    host = place.split("://")[1].split("/", maxsplit=1)[0].split(":", maxsplit=1)[0]
    document = {
        "name": "fmp",
        "base_url": place,
        "credential_in": "header:apikey",
        "credentials": [CREDENTIAL],
        "vocabulary": "fmp",
        "breaker": False,
    }
    await apply(market.app.database, read({"upstream": document}, "fmp.toml", private_hosts=[host]), "fmp.toml")
    market.hurry()


def _forgive(market: RefreshFleet) -> None:
    """As a redrive does: the keys are not backed off any more."""
    market.fleet.rows("UPDATE livewell.ledger SET retry_at = NULL, failures = 0, due_at = livewell.now()")


async def _mend(market: RefreshFleet, findings: Findings, keys: list[str]) -> None:
    await market.upstream("breaker = false")
    _forgive(market)
    readings = await market.demand(keys)
    findings.check(
        {one.verdict for one in readings} == {"fresh"}, f"not fresh after the row was mended: {readings[:1]}"
    )
    await market.until_quiet(findings)


def _authority(folder: Path, name: str) -> Path:
    place = folder / name
    place.mkdir()
    (place / "index.txt").touch()
    (place / "serial").write_text("01\n")
    (place / "ca.cnf").write_text(
        "[ca]\ndefault_ca=here\n[here]\ndatabase=index.txt\nserial=serial\nnew_certs_dir=.\ncertificate=ca.pem\n"
        "private_key=ca.key\ndefault_md=sha256\npolicy=any\nunique_subject=no\n[any]\ncommonName=supplied\n"
    )
    _openssl(place, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-keyout", "ca.key", "-out", "ca.pem", "-subj", f"/CN={name}")  # fmt: skip
    return place


def _certificate(authority: Path, name: str, host: str, start: str, end: str) -> ssl.SSLContext:
    (authority / f"{name}.ext").write_text(f"subjectAltName=DNS:{host}\n")
    _openssl(authority, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={host}")  # fmt: skip
    _openssl(authority, "ca", "-batch", "-config", "ca.cnf", "-in", f"{name}.csr", "-out", f"{name}.pem",
             "-extfile", f"{name}.ext", "-startdate", start, "-enddate", end, "-notext")  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / f"{name}.pem", authority / f"{name}.key")
    return context


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=60)


SCENARIOS = (
    Scenario("F-D15", "redirects and registry rows that lead inside", partial(run_addresses)),
    Scenario("F-D16", "certificates that prove nothing", partial(run_certificates)),
)
