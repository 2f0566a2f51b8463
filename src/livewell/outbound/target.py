"""Where a call goes: a URL read strictly, and a host that was named beforehand.

    https://host[:port]/path[?query]      hosts on the allow-list
    http://… too                          only hosts named private

Anything that two programs could read differently is refused, not repaired: user names, fragments,
backslashes, control and non-ASCII characters, a lone %, dot segments, numbers in place of a host
name.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from livewell.errors import ConfigurationError
from livewell.host import host_name
from livewell.outbound.address import place

__all__ = ["HOSTS_MAX", "Hosts", "Target", "UrlRefused"]

HOSTS_MAX = 1_000
_URL_CHARS_MAX = 8_000
_HOST_CHARS_MAX = 253

_URL = re.compile(
    r"""(?x)
    (?P<scheme>https?)://
    (?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])
    (?::(?P<port>[0-9]{1,5}))?
    (?P<path>(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*+)*+)
    (?P<query>\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*+)?
    """
)
_DOTS = re.compile(r"(?i)/(?:\.|%2e){1,2}(?=/|$)")


class UrlRefused(Exception):
    """This URL is not one we call; the text says why and never repeats more of it than the host."""


@dataclass(frozen=True, slots=True)
class Target:
    """A checked URL: what to ask for, and whether its host may be one of ours."""

    url: str
    origin: str  # scheme, host and port: all of a URL that an error may show
    private: bool


class Hosts:
    """The two lists: hosts that may be called, and among them those that may be on our own network."""

    def __init__(self, allowed: Sequence[str], private: Sequence[str] = ()) -> None:
        if max(len(allowed), len(private)) > HOSTS_MAX:
            raise ConfigurationError(f"outbound hosts: {HOSTS_MAX} are allowed in each list")
        try:
            self._private = frozenset(map(host_name, private))
            self._allowed = frozenset(map(host_name, allowed)) | self._private
        except ValueError as error:
            raise ConfigurationError(f"outbound hosts: {error}") from error
        # A URL with an address instead of a name meets no resolver, so it is judged here (and again
        # at the socket).
        self._misplaced = frozenset(host for host in self._allowed if not self._may_be_called(host))

    def may_be_private(self, host: str) -> bool:
        """Whether this host is named as one that may be on our own network."""
        return host in self._private

    def read(self, url: str) -> Target:
        """Check a URL whole; raises UrlRefused."""
        if len(url) > _URL_CHARS_MAX:
            raise UrlRefused(f"the URL has more than {_URL_CHARS_MAX} characters")
        found = _URL.fullmatch(url)
        if found is None:
            raise UrlRefused("not a plain http(s) URL: no user name, fragment, control character or stray % is allowed")
        host = found["host"].lower()
        if host not in self._allowed:
            raise UrlRefused(f"host {host[:_HOST_CHARS_MAX]!r} is not allowed; name it in outbound_hosts")
        private = host in self._private
        if found["scheme"] == "http" and not private:
            raise UrlRefused(f"host {host!r}: only https is allowed, except for hosts in outbound_private_hosts")
        if _DOTS.search(found["path"]):
            raise UrlRefused(f"host {host!r}: a path with . or .. as a segment")
        port = int(found["port"] or (443 if found["scheme"] == "https" else 80))
        if not 1 <= port <= 65_535:
            raise UrlRefused(f"host {host!r}: port {port}")
        if host in self._misplaced:
            raise UrlRefused(f"address {host} is not public, and not named in outbound_private_hosts")
        origin = f"{found['scheme']}://{host}:{port}"
        return Target(f"{origin}{found['path'] or '/'}{found['query'] or ''}", origin, private)

    def _may_be_called(self, host: str) -> bool:
        bare = host.strip("[]")
        try:
            ip_address(bare)
        except ValueError:
            return True  # a name: its addresses are judged when they are known
        return place(bare) in (("public", "private") if host in self._private else ("public",))
