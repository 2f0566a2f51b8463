"""Where values of settings come from: flags, the environment, a file.

Each value is kept with the name that the user gave it, because an error must show that name.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from livewell.settings.words import flag, show

_PREFIX = "LIVEWELL_"
_FILE = "livewell.toml"
_FILE_BYTES_MAX = 1_048_576


@dataclass(frozen=True, slots=True)
class Given:
    """A value, and what the user calls it."""

    label: str
    value: object = field(repr=False)


def gather(names: Collection[str], flags: Mapping[str, object]) -> tuple[dict[str, Given], list[str]]:
    """Every value that is set, under the highest name that sets it, and what is wrong before any value is looked at."""
    problems: list[str] = []
    given = _from_file(names, problems)
    given |= _from_environment(names, problems)
    given |= _from_flags(names, flags, problems)
    return given, problems


def _from_flags(names: Collection[str], flags: Mapping[str, object], problems: list[str]) -> dict[str, Given]:
    known = {name: f"{flag(name)} (keyword {name})" for name in names}
    problems += [
        f"{flag(name)} (keyword {name}) is not a setting{_suggest(name, known)}" for name in flags if name not in known
    ]
    return {name: Given(known[name], value) for name, value in flags.items() if name in known and value is not None}


def _from_environment(names: Collection[str], problems: list[str]) -> dict[str, Given]:
    known = {_PREFIX + name.upper(): name for name in names}
    given: dict[str, Given] = {}
    if "DATABASE_URL" in os.environ:
        given["database_url"] = Given("DATABASE_URL", os.environ["DATABASE_URL"])
    for variable in sorted(os.environ):
        if variable in known and not _is_foreign(variable):  # a service livewell-http makes LIVEWELL_HTTP_PORT=tcp://…
            given[known[variable]] = Given(variable, os.environ[variable])
        elif variable.upper().startswith(_PREFIX) and not _is_foreign(variable):
            problems.append(f"{variable} (environment) is not a setting{_suggest(variable.upper(), known)}")
    return given


# A Kubernetes service called livewell-… puts LIVEWELL_…_SERVICE_HOST, LIVEWELL_…_PORT=tcp://… and
# more into every pod.
_KUBERNETES = re.compile(r"LIVEWELL_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)")


def _is_foreign(variable: str) -> bool:
    """Ours but no setting (tests, the file's path), or Kubernetes'."""
    if variable == "LIVEWELL_CONFIG" or variable.startswith("LIVEWELL_TEST_") or _KUBERNETES.fullmatch(variable):
        return True
    return variable.endswith("_PORT") and os.environ[variable].startswith(("tcp://", "udp://", "sctp://"))


def _from_file(names: Collection[str], problems: list[str]) -> dict[str, Given]:
    path = os.environ.get("LIVEWELL_CONFIG")
    shown = _FILE if path is None else path
    values = _parse(shown, problems) if path is not None or Path(_FILE).exists() else {}
    for key in values:
        if key == "livewell" and isinstance(values[key], dict):
            problems.append(
                f"[livewell] in {shown} is not a setting. Settings stand at the top level: remove that line"
            )
        elif key not in names:
            problems.append(f"{show(key)} in {shown} is not a setting{_suggest(key, names)}")
    return {key: Given(f"{key} in {shown}", value) for key, value in values.items() if key in names}


def _file_label(shown: str) -> str:
    return f"LIVEWELL_CONFIG={show(shown)}" if "LIVEWELL_CONFIG" in os.environ else shown


def _parse(shown: str, problems: list[str]) -> dict[str, object]:
    try:
        with Path(shown).open("rb") as file:
            content = file.read(_FILE_BYTES_MAX + 1)
        if len(content) > _FILE_BYTES_MAX:
            problems.append(f"{shown} is larger than {_FILE_BYTES_MAX} bytes; a settings file is small")
            return {}
        return tomllib.loads(content.decode("utf-8-sig"))
    except OSError as error:
        problems.append(f"{_file_label(shown)} cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        problems.append(f"{shown} is not UTF-8 text (at line {line})")
    except tomllib.TOMLDecodeError as error:
        problems.append(f"{shown} is not valid TOML: {error}")
    return {}


def _suggest(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name[:100], known, n=1, cutoff=0.6)
    if not close:
        return ". All settings: livewell docs reference/settings"
    return f". Did you mean {close[0]}?"
