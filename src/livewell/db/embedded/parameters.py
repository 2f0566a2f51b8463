"""The settings a server starts with, and which of them are remembered.

    defaults ◀─overridden by─ remembered (parameters.json) ◀─overridden by─ asked for now ◀─overridden by─ ALTER SYSTEM

They are written to livewell.conf, which the cluster's postgresql.conf includes. So ALTER SYSTEM
still works, and a server started by hand has them too. A setting that was asked for is remembered
only once a server has started with it: a wrong value must not spoil later starts.
"""

import json
import re
from collections.abc import Mapping

from livewell.db.embedded.folder import Folder
from livewell.errors import EmbeddedPostgresError

INCLUDE = "include_if_exists = '../livewell.conf'\n"
_NAME = re.compile(r"[a-z_][a-z0-9_.]*")
_OURS = frozenset(
    {"config_file", "data_directory", "external_pid_file", "hba_file", "ident_file", "listen_addresses"}
    | {"logging_collector", "port", "unix_socket_directories"}
)
_DEFAULTS: Mapping[str, str] = {
    "autovacuum_naptime": "10s",  # a queue table turns over thousands of rows a second; the usual minute is too long
    "cluster_name": "livewell",
    "idle_in_transaction_session_timeout": "60s",  # one forgotten transaction stops vacuum for everybody
    "log_checkpoints": "off",
    "log_line_prefix": "%m [%p] ",
    "log_timezone": "UTC",
    "max_connections": "200",
    # the login is called livewell: with "$user" first, people's own tables would land in our schema
    "search_path": "public",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "unix_socket_permissions": "0700",
}


def check(parameters: Mapping[str, str]) -> dict[str, str]:
    """The same parameters, or an error for a name or value that cannot be one."""
    for name, value in parameters.items():
        if name in _OURS:
            raise EmbeddedPostgresError(
                f"embedded Postgres: parameter {name}={value!r}: the launcher sets this one itself. Leave it out."
            )
        if not _NAME.fullmatch(name) or not value.isprintable():
            raise EmbeddedPostgresError(
                f"embedded Postgres: parameter {name!r}={value!r} is not a Postgres setting. "
                "Give names in lower case and values on one line, as in: fsync=off"
            )
    return dict(parameters)


def merge(folder: Folder, asked: Mapping[str, str]) -> dict[str, str]:
    """What was remembered, with what is asked for now on top."""
    remembered: dict[str, str] = json.loads(folder.read("parameters.json") or "{}")
    return remembered | dict(asked)


def as_json(parameters: Mapping[str, str]) -> str:
    """The text of parameters.json."""
    return json.dumps(dict(parameters), indent=1, sort_keys=True) + "\n"


def as_conf(parameters: Mapping[str, str]) -> str:
    """The text of livewell.conf."""
    settings = {**_DEFAULTS, **parameters}
    lines = [f"{name} = {_quoted(value)}\n" for name, value in sorted(settings.items())]
    return "# Written at every start. To change a setting: ALTER SYSTEM, or parameters= of start().\n" + "".join(lines)


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
