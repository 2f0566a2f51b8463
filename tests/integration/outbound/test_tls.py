"""F-D16: a certificate that does not prove the host is refused, and nobody tries again without asking for one.

The authority and its certificates are made here by openssl; the server's log shows that no request
was ever sent.
"""

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from livewell.outbound import Outbound
from tests.integration.outbound.hostile import HostileServer, answering
from tests.integration.outbound.support import failure

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is needed to make certificates")

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=60)


@dataclass(frozen=True)
class Authority:
    """A certificate authority in a folder."""

    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "ca.pem"

    def server(self, name: str, host: str, start: str, end: str) -> ssl.SSLContext:
        """A server that shows a certificate for this host, valid between two instants (YYMMDDHHMMSSZ)."""
        (self.folder / f"{name}.ext").write_text(f"subjectAltName=DNS:{host}\n")
        openssl(self.folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={host}")  # fmt: skip
        openssl(self.folder, "ca", "-batch", "-config", "ca.cnf", "-in", f"{name}.csr", "-out", f"{name}.pem",
                "-extfile", f"{name}.ext", "-startdate", start, "-enddate", end, "-notext")  # fmt: skip
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        return context


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    folder = tmp_path_factory.mktemp("authority")
    (folder / "index.txt").touch()
    (folder / "serial").write_text("01\n")
    (folder / "ca.cnf").write_text(
        "[ca]\ndefault_ca=here\n[here]\ndatabase=index.txt\nserial=serial\nnew_certs_dir=.\ncertificate=ca.pem\n"
        "private_key=ca.key\ndefault_md=sha256\npolicy=any\nunique_subject=no\n[any]\ncommonName=supplied\n"
    )
    openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Test authority")  # fmt: skip
    return Authority(folder)


async def local(_: str) -> list[str]:
    return ["127.0.0.1"]


ALWAYS = ("20200101000000Z", "20991231235959Z")


async def test_a_good_certificate_is_accepted_and_checked_against_the_name(authority: Authority) -> None:
    """The connection goes to the address, the proof is for the name."""
    tls = authority.server("good", "api.test", *ALWAYS)
    async with (
        HostileServer(answering(PLAIN), tls=tls) as server,
        Outbound(allowed_hosts=[], private_hosts=["api.test"], ca_file=authority.file, resolve=local) as client,
    ):
        answer = await client.get(f"https://api.test:{server.port}/", body_bytes_max=100)

    assert (answer.status, answer.wire_bytes) == (200, len(PLAIN))


@pytest.mark.parametrize(
    ("name", "host", "dates", "trusted"),
    [
        ("expired", "api.test", ("20200101000000Z", "20210101000000Z"), True),
        ("early", "api.test", ("20980101000000Z", "20991231235959Z"), True),
        ("other", "evil.test", ALWAYS, True),
        ("stranger", "api.test", ALWAYS, False),
    ],
)
async def test_a_bad_certificate_is_refused_and_nothing_is_sent(
    authority: Authority, name: str, host: str, dates: tuple[str, str], trusted: bool
) -> None:
    """Expired, not yet valid, for another host, from an authority nobody trusts.

    One connection, no request.
    """
    tls = authority.server(name, host, *dates)

    def spend() -> None:
        raise AssertionError("a permit was asked for")

    async with (
        HostileServer(answering(PLAIN), tls=tls) as server,
        Outbound(
            allowed_hosts=[],
            private_hosts=["api.test"],
            ca_file=authority.file if trusted else None,
            resolve=local,
        ) as client,
    ):
        failed = await failure(client, f"https://api.test:{server.port}/")

    assert (failed.reason, failed.sent, server.requests) == ("tls", False, [])
    assert "certificate" in failed.detail


async def test_a_server_without_tls_is_refused(authority: Authority) -> None:
    """https is never answered with less."""
    async with (
        HostileServer(lambda visit: visit.send(PLAIN)) as server,
        Outbound(allowed_hosts=[], private_hosts=["127.0.0.1"], ca_file=authority.file) as client,
    ):
        failed = await failure(client, f"https://127.0.0.1:{server.port}/")

    assert (failed.reason in ("tls", "connection"), failed.sent) == (True, False)
    assert not any(b"GET" in request for request in server.requests)


def test_verification_cannot_be_turned_off() -> None:
    """There is no argument for it, and the context demands a certificate for the name."""
    client = Outbound(allowed_hosts=["api.test"])

    assert client._tls.verify_mode == ssl.CERT_REQUIRED
    assert client._tls.check_hostname
