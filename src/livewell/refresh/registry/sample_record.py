"""Record a sample: ask the upstream for one key, and write the [sample] table of the type's file from the answer.

How to ask is given by the caller (Fetch): this module knows neither the HTTP client nor the secret.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from livewell.errors import InvalidOption, LivewellError
from livewell.refresh.definition.credentials import secrets_for
from livewell.refresh.definition.model import TypeDefinition, UpstreamDefinition
from livewell.refresh.fetch.request import Request, build
from livewell.refresh.result import Result
from livewell.refresh.validate.answer import Transform, validate
from livewell.telemetry.control_characters import CONTROLS


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer with status 200."""

    body: bytes
    content_type: str | None


# Makes the call: adds the credential, keeps the deadline and the bound on the body, raises on any
# other status.
Fetch = Callable[[Request, TypeDefinition, UpstreamDefinition], Awaitable[Fetched]]


@dataclass(frozen=True, slots=True)
class Recorded:
    """The answer, what would become of it, and the table to put into the file."""

    key: str
    body: str
    result: Result
    table: str


async def record(
    definition: TypeDefinition,
    upstream: UpstreamDefinition,
    key: str,
    *,
    fetch: Fetch,
    now: datetime,
    transforms: Mapping[str, Transform] | None = None,
) -> Recorded:
    """Fetch one answer and write it as a sample, whether or not it validates.

    A new sample is wanted most when the old schema does not fit.
    """
    if not definition.fetch.pattern.fits(key):
        raise InvalidOption(f"{definition.name}: key {key[:40]!r} does not fit {definition.fetch.pattern.text}")
    answer = await fetch(build(definition, [key], upstream), definition, upstream)
    secrets = secrets_for(upstream)
    if secrets.is_in(answer.body):
        raise LivewellError(
            f"{definition.name} {key}: the answer repeats the credential it was asked with, so it is not "
            "recorded: a file is no place for it"
        )
    result = validate(
        definition,
        [key],
        answer.body,
        content_type=answer.content_type,
        now=now,
        transforms=transforms,
        secrets=secrets,
    )[key]
    try:
        body = answer.body.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise LivewellError(f"{definition.name} {key}: the answer is not UTF-8 text; nothing to record") from None
    return Recorded(key, body, result, sample_table(key, now, body))


def sample_table(key: str, recorded: datetime, body: str) -> str:
    """[sample] as TOML; the body stands as it is where TOML allows that."""
    plain = "'''" not in body and not CONTROLS.search(body)  # what a terminal would obey, and what TOML does not allow
    text = f"'''\n{body}\n'''" if plain else _quoted(body)
    return f'[sample]\nkey = "{key}"\nrecorded = "{recorded:%Y-%m-%d}"\nbody = {text}\n'


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    escaped = escaped.replace("\n", "\\n").replace("\t", "\\t")
    return '"' + CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04X}", escaped) + '"'
