"""Read the [upstream] table of a file or of a registry row."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from livewell.errors import ConfigurationError, InvalidDefinition
from livewell.limits.limiter import DEADLINE_SECONDS, Breaker, Limits
from livewell.limits.limiter import read as read_limits
from livewell.refresh.definition.credentials import is_ours, refusal
from livewell.refresh.definition.model import UpstreamDefinition
from livewell.refresh.definition.table import Table

_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
_URL = re.compile(r"https?://[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*")
_CREDENTIAL_IN = re.compile(r"(header|query):[A-Za-z0-9_-]{1,64}")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
# Headers that are part of the protocol or of our own request: a credential in one of them would
# change what is asked, or of whom.
_OWN_HEADERS = {
    *("host", "content-length", "transfer-encoding", "connection", "te", "upgrade", "expect", "trailer"),
    *("accept", "accept-encoding", "if-none-match", "if-modified-since", "user-agent", "range"),
}


def read_upstream(
    document: Mapping[str, Any],
    where: str,
    *,
    private_hosts: Collection[str] | None = (),
    own_variables: Collection[str] = (),
) -> UpstreamDefinition:
    """Check everything.

    private_hosts: hosts that may be private addresses or speak plain HTTP; own_variables: those
    that the settings name, which are no credentials.

    With private_hosts None neither is judged here: it is a row that was applied before, and whoever
    calls the upstream looks.
    """
    table = Table(document, where)
    name = table.text("name", required=True, chars_max=31, form=_NAME, allowed="a letter, then a-z 0-9 _, is allowed")
    url = table.text(
        "base_url",
        required=True,
        chars_max=400,
        form=_URL,
        allowed="http(s)://host[:port][/path] is allowed, without user, query, // or a final /",
    )
    assert name is not None  # noqa: S101 - required
    assert url is not None  # noqa: S101 - required
    _check_url(table, url, private_hosts)
    credential_in = table.text(
        "credential_in", form=_CREDENTIAL_IN, allowed='"header:<name>" or "query:<name>" is allowed'
    )
    if credential_in and credential_in.startswith("header:") and credential_in[7:].lower() in _OWN_HEADERS:
        table.wrong("credential_in", credential_in, "this header is not for credentials")
    credentials = table.texts("credentials", 20, 64)
    for credential in credentials:
        if not _VARIABLE.fullmatch(credential):
            table.refuse(
                "credentials: each is the NAME of an environment variable (A-Z 0-9 _), as in FMP_API_KEY; never "
                "write the key itself"
            )
        if private_hosts is not None and is_ours(credential, own_variables):
            table.refuse(f"credentials: {refusal(credential)}")
    if bool(credentials) != bool(credential_in):
        table.refuse("credentials and credential_in belong together: give both or none")
    vocabulary = table.word("vocabulary", ("plain", "fmp"), default="plain")
    counts = table.word("counts", ("wire", "decoded", "larger"), default="larger")
    limits = _limits(table, name, credentials)
    table.done()
    return UpstreamDefinition(name, url, credential_in, credentials, vocabulary, counts, limits, dict(document))


def _check_url(table: Table, url: str, private_hosts: Collection[str] | None) -> None:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        table.wrong("base_url", url, "the port is not one")
    if port == 0 or not host or ".." in host or host.startswith((".", "-")):
        table.wrong("base_url", url, "a host name and a port from 1 to 65535 are allowed")
    if any(segment in (".", "..") for segment in parts.path.split("/")):
        table.wrong("base_url", url, "a path without . and .. is allowed")
    if private_hosts is None or host in private_hosts:
        return
    if _inward(host):
        table.wrong("base_url", url, f"{host} is an address of this machine or network; a setting must name it first")
    if parts.scheme != "https":
        table.wrong("base_url", url, "https is needed, unless a setting names the host as private")


def _inward(host: str) -> bool:
    """Whether the name itself says so.

    What a name resolves to is checked by outbound, at every call.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        last = host.rstrip(".").rpartition(".")[2].lower()
        # 2130706433, 0x7f.1 and 127.1 are addresses too, for a resolver.
        odd_number = last.isdigit() or re.fullmatch(r"0x[0-9a-f]*", last) is not None
        return odd_number or last in ("localhost", "local", "internal", "localdomain")
    return not address.is_global or address.is_multicast


def _limits(table: Table, name: str, credentials: tuple[str, ...]) -> Limits:
    given: dict[str, Any] = {option: _plain(table.take(option)) for option in ("rate", "budget", "budget_resets")}
    shares: dict[str, Any] = {
        "reserve": 0.1,
        "budget_stop": 0.95,
        "budget_background_stop": 0.8,
        "permit": None,
        "deadline": DEADLINE_SECONDS,
        "silence_max": "15m",
    }
    numbers: dict[str, Any] = {option: _plain(table.take(option)) for option in shares}
    for option, value in {**given, **numbers}.items():
        if not isinstance(value, str | int | float | None) or (isinstance(value, str) and len(value) > 60):
            table.wrong(option, value, 'write it like "300/min", "20GB/30d", "10%" or 0.1')
    burst = table.whole("burst", 1, 100_000, default=10)
    concurrency, per_key = (table.take(option) for option in ("concurrency", "per_key"))
    breaker = _breaker(table)
    try:
        return read_limits(
            name,
            **given,
            **{option: default if numbers[option] is None else numbers[option] for option, default in shares.items()},
            burst=burst,
            estimate=1,
            concurrency=concurrency,
            per_key=per_key,
            breaker=breaker,
            credentials=credentials,
        )
    except ConfigurationError as error:
        raise InvalidDefinition(f"{table.where}: {error}") from None
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InvalidDefinition(f"{table.where}: a limit cannot be read: {str(error)[:100]}") from None


def _breaker(table: Table) -> Breaker | None:
    value = table.take("breaker")
    if value is None or isinstance(value, bool):
        return Breaker() if value is not False else None
    inner = Table(value, f"{table.where}: breaker")
    names = ("failures", "share", "within", "in_row", "open_for", "open_max", "wall")
    stated = {name: _plain(found) for name in names if (found := inner.take(name)) is not None}
    inner.done()
    for name, one in stated.items():
        if not isinstance(one, str | int | float) or (isinstance(one, str) and len(one) > 20):
            inner.wrong(name, one, 'a number or a text such as "60s" or "20%" is allowed')
    return Breaker(**stated)


def _plain(value: object) -> Any:
    return float(value) if isinstance(value, Decimal) else value
