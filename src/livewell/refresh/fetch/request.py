"""What to ask for: the address of one call, made from the type, the upstream and the keys.

Pure, and without secrets: with_credential() says where one goes, and does not show it.

Keys are checked against the type's pattern and percent-encoded, so none can leave its place in the
path or the query (F-D19).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from urllib.parse import quote

from pydantic import SecretStr

from livewell.errors import InvalidOption
from livewell.refresh.definition.model import Call, TypeDefinition, UpstreamDefinition

_HEADERS = {"accept": "application/json"}
_FROM = "{from}"


@dataclass(frozen=True, slots=True)
class Request:
    """One call: its whole address, and headers; neither holds a secret."""

    url: str
    path: str
    query: str
    headers: Mapping[str, str]


def build(
    definition: TypeDefinition, keys: Sequence[str], upstream: UpstreamDefinition, *, since: date | None = None
) -> Request:
    """The call for one key, or for many where the type has a batch endpoint.

    since: of a history, only the days from this one on.
    """
    for key in keys:
        if not definition.fetch.pattern.fits(key):
            raise InvalidOption(f"{definition.name}: key {key[:40]!r} does not fit {definition.fetch.pattern.text}")
    if len(keys) == 1:
        return _request(upstream, _from(definition.fetch.call, since), "{key}", quote(keys[0], safe=""))
    batch = definition.fetch.batch
    if batch is None or not 1 < len(keys) <= batch.keys_max:
        raise InvalidOption(
            f"{definition.name}: {len(keys)} keys in one call, at most {definition.keys_max} are allowed"
        )
    # The separator stays as it is: some upstreams do not decode it, and no key contains it.
    return _request(upstream, batch.call, "{keys}", batch.separator.join(quote(key, safe="") for key in keys))


def with_credential(
    upstream: UpstreamDefinition, secret: SecretStr | None
) -> tuple[dict[str, SecretStr], dict[str, SecretStr]]:
    """What to add to a request's headers and to its query, hidden until it is sent."""
    if secret is None:
        return {}, {}
    text = secret.get_secret_value()
    if not text.isascii() or not text.isprintable() or not text:
        raise InvalidOption(f"upstream {upstream.name}: the credential is empty or not printable ASCII")
    where, _, name = (upstream.credential_in or "").partition(":")
    return ({name: secret} if where == "header" else {}), ({name: secret} if where == "query" else {})


def _from(call: Call, since: date | None) -> Call:
    """The parameter that says where a history begins: with the day, or left out."""
    if since is None:
        return Call(call.path, tuple((name, text) for name, text in call.query if _FROM not in text))
    return Call(call.path, tuple((name, text.replace(_FROM, since.isoformat())) for name, text in call.query))


def _request(upstream: UpstreamDefinition, call: Call, place: str, encoded: str) -> Request:
    path = call.path.replace(place, encoded)
    if any(part in (".", "..") for part in path.split("/")):
        raise InvalidOption(f"upstream {upstream.name}: a key that is only dots cannot stand in a path")
    query = "&".join(f"{quote(name, safe='')}={_value(text, place, encoded)}" for name, text in call.query)
    return Request(f"{upstream.base_url}{path}{'?' if query else ''}{query}", path, query, dict(_HEADERS))


def _value(text: str, place: str, encoded: str) -> str:
    return encoded.join(quote(part, safe="") for part in text.split(place))
