"""Put a failed call into words: a reason from the closed list, and a sentence.

Neither a secret nor the URL is in them. aiohttp's own exceptions carry the URL and every header of
the request, so none of them leaves this package, not even as the cause of ours: CallFailed is
raised after they are gone.
"""

import errno
import ssl
from typing import Literal

import aiohttp

from livewell.outbound.guard import AddressRefused
from livewell.telemetry.redact import redact
from livewell.telemetry.secret_forms import secrets_of

__all__ = ["DETAIL_CHARS_MAX", "BodyRefused", "Reason", "explain", "safe"]

Reason = Literal[
    "refused_address",  # not a URL we call, or its name leads where we do not go
    "deadline",
    "tls",
    "connection",  # refused, reset, no such name, not HTTP, gone before the head
    "truncated",  # the body ended before its end
    "too_large",
    "bomb",
    "content_type",  # an encoding we did not ask for, or not what it says
]

DETAIL_CHARS_MAX = 300


class BodyRefused(Exception):
    """The body went over a cap or is not what it says."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


def explain(error: BaseException) -> tuple[Reason, str]:
    """Name what went wrong, in our own words: a server's text is never repeated."""
    refused = _address_refused(error)
    if refused is not None:
        return "refused_address", str(refused)
    if isinstance(error, BodyRefused):
        return error.reason, error.detail
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "tls", f"the certificate is refused: {_certificate(error.certificate_error)}"
    for kind, reason, words in _WORDS:
        if isinstance(error, kind):
            return reason, words
    return "connection", _system_error(error)


_WORDS: tuple[tuple[type[BaseException], Reason, str], ...] = (
    (aiohttp.ClientSSLError, "tls", "no TLS connection could be made"),
    (ssl.SSLError, "tls", "no TLS connection could be made"),
    (aiohttp.ClientPayloadError, "truncated", "the body ends before its end"),
    (aiohttp.ClientConnectorDNSError, "connection", "the host name has no address, or no name server answers"),
    (aiohttp.ServerDisconnectedError, "connection", "the connection was closed before an answer came"),
    (aiohttp.ClientResponseError, "connection", "what came is not an HTTP answer"),
)


def _system_error(error: BaseException) -> str:
    number = error.errno if isinstance(error, OSError) else None
    return type(error).__name__ if number is None else errno.errorcode.get(number, f"error {number}")


def _address_refused(error: BaseException | None) -> AddressRefused | None:
    """The guard's refusal, which aiohttp wraps in an error of its own."""
    for _ in range(5):
        if error is None or isinstance(error, AddressRefused):
            return error
        error = error.__cause__
    return None


def _certificate(error: Exception) -> str:
    return getattr(error, "verify_message", "") or type(error).__name__


def safe(text: str, secrets: tuple[str, ...]) -> str:
    """Hide known secrets, then what looks like one; then cut."""
    return redact(secrets_of(*secrets).hide(text, 2 * DETAIL_CHARS_MAX))[:DETAIL_CHARS_MAX]
