"""Everything that can be set, checked once at start-up.

    flags (keywords)  ▶  environment (LIVEWELL_*, DATABASE_URL)  ▶  livewell.toml  ▶  defaults     the first wins

`Settings.load()` is the one way in: it reads those places and raises one ConfigurationError that lists every wrong
value under the name the user gave it. `Settings(...)` itself reads nothing but its arguments, so a test never runs
against the DATABASE_URL of whoever started it.

The page docs/reference/settings.md is made from the fields: `python -m livewell.settings > docs/reference/settings.md`.
"""

import difflib
import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from livewell.errors import ConfigurationError
from livewell.host import host_name
from livewell.redact import MASK, mask_url, redact

__all__ = ["AlertChannel", "Issuer", "Settings", "reference_page"]

_PREFIX = "LIVEWELL_"
_FILE = "livewell.toml"
_FILE_BYTES_MAX = 1_048_576
_SHOWN_CHARS_MAX = 80


def _refuse_bool(value: object) -> object:
    """Python counts True as 1; `lease_seconds = true` is a mistake."""
    if isinstance(value, bool):
        raise ValueError("a number, not true or false")  # not TypeError: pydantic collects only ValueError
    return value


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _check_address(secret: SecretStr) -> SecretStr:
    """Only the shape: whether anybody answers there is the pool's to find out."""
    address = secret.get_secret_value().strip()  # a secret read from a file ends with a newline
    if len(address) > 4096 or not re.match(r"postgres(?:ql)?://|[a-z_]+\s*=", address) or "\0" in address:
        raise ValueError("not a Postgres address")
    return SecretStr(address)


def _check_path(value: object) -> object:
    """`Path("")` is the current folder: an empty variable must not put a database there."""
    if isinstance(value, str | Path) and str(value).strip() and "\0" not in str(value):
        try:
            return Path(value).expanduser()
        except RuntimeError as error:  # ~nobody has no home
            raise ValueError("no such home folder") from error
    raise ValueError("not a path")


_HOSTS_MAX = 1_000


def _split_hosts(value: object) -> object:
    """`a.com, b.com`, or a list of them; exact names, so no *, no port and no scheme."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError("not a list of host names")
    hosts = tuple(dict.fromkeys(map(host_name, names)))
    if len(hosts) > _HOSTS_MAX:
        raise ValueError("too many host names")
    return hosts


def _split_origins(value: object) -> object:
    """`https://a.com, http://localhost:3000`, or a list of them."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError("not a list of origins")
    origins = tuple(dict.fromkeys(map(_origin, names)))
    if len(origins) > _HOSTS_MAX:
        raise ValueError("too many origins")
    return origins


_ORIGIN = re.compile(r"(https?)://([^/:\[\]]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")


def _origin(text: str) -> str:
    """Exactly as browsers send it."""
    match = _ORIGIN.fullmatch(text.strip().lower())
    if match is None or match[3] == {"http": ":80", "https": ":443"}[match[1]]:
        raise ValueError("not an origin")
    return f"{match[1]}://{host_name(match[2])}{match[3] or ''}"


class Issuer(BaseModel):
    """One who may say who a person is. The algorithm is fixed: what a token says of its own is never believed."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,19}$")]
    issuer: Annotated[str, Field(min_length=1, max_length=500)]
    audience: Annotated[str, Field(min_length=1, max_length=500)]
    algorithm: Literal["RS256", "ES256", "EdDSA", "HS256"]
    key: Annotated[str, Field(pattern=r"^(env:[A-Za-z_][A-Za-z0-9_]{0,99}|file:.{1,1000})$")]
    scopes_claim: Annotated[str, Field(min_length=1, max_length=100)] = "scope"


def _read_issuers(value: object) -> object:
    """A list of tables; in the environment it is JSON."""
    issuers = json.loads(value) if isinstance(value, str) else value
    if not isinstance(issuers, list | tuple) or len(issuers) > 20:
        raise ValueError("not a list of issuers")
    if not all(isinstance(one, dict | Issuer) for one in issuers):
        raise ValueError("not an issuer")
    names = [one.get("name") if isinstance(one, dict) else one.name for one in issuers]
    said = [one.get("issuer") if isinstance(one, dict) else one.issuer for one in issuers]
    if len(set(names)) < len(names) or len(set(said)) < len(said):
        raise ValueError("an issuer is named twice")
    return tuple(issuers)


_ENVIRONMENT = r"^env:[A-Za-z_][A-Za-z0-9_]{0,99}$"


class AlertChannel(BaseModel):
    """Somebody who is told of alerts. Its address is a secret: here stands the name of a variable that holds it."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
    kind: Literal["webhook", "discord", "apprise"]
    address: Annotated[str, Field(pattern=_ENVIRONMENT)]
    secret: Annotated[str, Field(pattern=_ENVIRONMENT)] | None = None
    level: Literal["P0", "P1", "P2"] = "P2"

    @model_validator(mode="after")
    def _a_webhook_is_signed(self) -> Self:
        if (self.kind == "webhook") != (self.secret is not None):
            raise ValueError("a webhook has a secret, and nothing else has one")
        return self


def _read_channels(value: object) -> object:
    """A list of tables; in the environment it is JSON."""
    channels = json.loads(value) if isinstance(value, str) else value
    if not isinstance(channels, list | tuple) or len(channels) > 20:
        raise ValueError("not a list of channels")
    if not all(isinstance(one, dict | AlertChannel) for one in channels):
        raise ValueError("not a channel")
    names = [one.get("name") if isinstance(one, dict) else one.name for one in channels]
    if len(set(names)) < len(names):
        raise ValueError("a channel is named twice")
    return tuple(channels)


_Channels = Annotated[tuple[AlertChannel, ...], BeforeValidator(_read_channels)]
_Hosts = Annotated[tuple[str, ...], BeforeValidator(_split_hosts)]
_Origins = Annotated[tuple[str, ...], BeforeValidator(_split_origins)]
_Issuers = Annotated[tuple[Issuer, ...], BeforeValidator(_read_issuers)]
_Whole = Annotated[int, BeforeValidator(_refuse_bool)]
_Number = Annotated[float, BeforeValidator(_refuse_bool)]
_Address = Annotated[SecretStr, AfterValidator(_check_address)]
_Folder = Annotated[Path, BeforeValidator(_check_path)]


def _bounded(default: float, low: float, high: float, description: str) -> Any:
    return Field(default=default, ge=low, le=high, description=description)


def _free(allowed: str, description: str, *, default: object = None, **limits: Any) -> Any:
    return Field(default=default, description=description, json_schema_extra={"allowed": allowed}, **limits)


_HOSTS_ALLOWED = f"exact host names with commas between, at most {_HOSTS_MAX}; no scheme, port or *"
_ADDRESS_ALLOWED = "postgresql://user:password@host:port/name, or host=… dbname=…"


class Settings(BaseSettings):
    """The validated configuration, frozen. Make it with `Settings.load()`."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, validate_default=True)

    database_url: _Address | None = _free(
        _ADDRESS_ALLOWED,
        "Where Postgres is; may be a pooler in transaction mode. Not set: an embedded server is started. "
        "`DATABASE_URL` is read too; `LIVEWELL_DATABASE_URL` wins.",
    )
    listen_url: _Address | None = _free(
        _ADDRESS_ALLOWED,
        "A direct address for LISTEN, where `database_url` is a transaction pooler. Not set: `database_url`.",
    )
    api_url: _Address | None = _free(
        _ADDRESS_ALLOWED,
        "Where `livewell serve` logs in for viewers' requests, as a member of `livewell_api`. Not needed on the embedded server, nor with `roles` none.",
    )
    operate_url: _Address | None = _free(
        _ADDRESS_ALLOWED, "The same for operators' requests, as a member of `livewell_operate`."
    )
    hub_url: _Address | None = _free(_ADDRESS_ALLOWED, "The same for streams, as a member of `livewell_hub`.")
    data_dir: _Folder | None = _free("a path", "The embedded server's folder. Not set: chosen by Livewell.")
    postgres_bin: _Folder | None = _free(
        "a path", "The folder with `postgres` and `initdb` for the embedded server. Not set: found."
    )
    roles: Annotated[Literal["create", "none"], BeforeValidator(_lower)] = Field(
        default="create",
        description="Whether `migrate` may create the `livewell_*` roles; `none` where the server does not let it.",
    )
    app: str | None = _free(
        "module:attribute, for example shop.jobs:app",
        "The Livewell app the command line runs.",
        pattern=r"^[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*$",
        max_length=200,
    )

    pool_size_max: _Whole = _bounded(10, 1, 200, "Connections one process holds at most.")
    pool_wait_seconds: _Number = _bounded(5, 0.001, 60, "How long a call waits for a free connection.")
    call_timeout_seconds: _Number = _bounded(
        10, 0.1, 300, "Our own deadline on every database call; a half-open connection ignores all others."
    )
    statement_timeout_seconds: _Number = _bounded(30, 0.1, 3600, "Postgres ends a statement after this long.")
    idle_in_transaction_seconds: _Number = _bounded(
        60, 0.1, 3600, "Postgres ends a session that leaves a transaction open and idle for this long."
    )
    connect_timeout_seconds: _Number = _bounded(
        5, 1, 60, "How long opening one connection may take; libpq counts whole seconds, and at least 2."
    )
    sync_wait_seconds: _Number = _bounded(60, 0.1, 3600, "How long a call through `app.sync` waits for its answer.")

    heartbeat_seconds: _Number = _bounded(5, 0.05, 60, "How often a worker renews its lease.")
    lease_seconds: _Number = _bounded(
        45, 0.5, 3600, "After this long without a renewal a worker is lost and its jobs are taken back."
    )
    poll_seconds: _Number = _bounded(1, 0.02, 60, "How often an idle worker asks for jobs when no nudge arrives.")
    maintain_seconds: _Number = _bounded(
        1, 0.05, 60, "How often lost jobs are recovered and delayed jobs become ready."
    )
    lost_max: _Whole = _bounded(5, 1, 100, "A job that was lost with its worker this often becomes a dead letter.")
    deadline_grace_seconds: _Number = _bounded(
        5, 0.1, 300, "A job this long past its deadline is taken back, whoever holds it."
    )

    worker_slots: _Whole = _bounded(20, 1, 1000, "Jobs one worker runs at once.")
    prefetch_max: _Whole = _bounded(1000, 1, 10_000, "Jobs one worker holds at most, running or waiting.")
    finish_batch_max: _Whole = _bounded(500, 1, 5000, "Jobs finished in one call at most.")
    finish_delay_ms: _Number = _bounded(3, 0, 1000, "How long a finished job waits for others to share its call.")
    grace_seconds: _Number = _bounded(
        25, 0, 3600, "How long a stopping worker lets running jobs end before it hands them back."
    )
    task_timeout_seconds: _Number = _bounded(300, 0.1, 86_400, "A handler's time limit, where its task states none.")
    stuck_threads_max: _Whole = _bounded(
        8, 1, 1000, "Threads a worker leaves to handlers that ignored their timeout, at most: a thread cannot be ended."
    )

    payload_bytes_max: _Whole = _bounded(
        262_144, 1, 262_144, "A job's arguments as JSON, at most; the database refuses more than 262144."
    )
    enqueue_batch_max: _Whole = _bounded(10_000, 1, 100_000, "Jobs in one enqueue call at most.")
    history_days: _Whole = _bounded(7, 1, 365, "How long finished jobs are kept.")
    history_days_ahead: _Whole = _bounded(14, 2, 60, "How many days of history partitions are made in advance.")
    dead_days: _Whole = _bounded(30, 30, 3650, "How long dead letters are kept; never reduced below 30 days.")
    stat_days: _Whole = _bounded(30, 1, 365, "How long statistics are kept.")
    run_days: _Whole = _bounded(30, 30, 3650, "How long the runs of schedules are kept; never reduced below 30 days.")
    progress_seconds: _Number = _bounded(1, 0.05, 60, "A job's progress is written at most this often.")
    stat_seconds: _Number = _bounded(10, 0.1, 300, "How often a worker writes its statistics.")
    nudge_ms: _Number = _bounded(20, 1, 1000, "At most one nudge per channel in this time.")
    listen_check_seconds: _Number = _bounded(10, 0.1, 300, "How often the listener proves that it still hears.")

    outbound_hosts: _Hosts = _free(
        _HOSTS_ALLOWED,
        "The only hosts that upstream calls may go to, with https, and only while their addresses are public.",
        default=("financialmodelingprep.com",),
    )
    outbound_private_hosts: _Hosts = _free(
        _HOSTS_ALLOWED,
        "Hosts that may be called too, with http as well, and may be on this machine or network.",
        default=(),
    )

    store_batch_max: _Whole = _bounded(200, 1, 2000, "Refreshed keys stored in one transaction at most.")
    viewer_heartbeat_seconds: _Number = _bounded(
        60,
        0.1,
        240,
        "How often `app.watch` says that it is still there; a viewer unseen for five minutes does not count.",
    )
    watch_keys_max: _Whole = _bounded(1000, 1, 10_000, "Keys one `app.watch` may follow at most.")
    watched_keys_max: _Whole = _bounded(
        20_000,
        1,
        1_000_000,
        "Keys one process follows at most, for watches and for reads that wait; beyond it reads do not wait.",
    )
    watched_bytes_max: _Whole = _bounded(
        268_435_456,
        1_048_576,
        4_294_967_296,
        "Bytes of values one process keeps of the keys it follows; a value beyond it is read again for the next who comes.",
    )
    cold_reads_max: _Whole = _bounded(
        20, 1, 10_000, "Keys that nobody ever asked for which one user may read through to the upstream in a minute."
    )

    http_host: Annotated[str, AfterValidator(host_name)] = _free(
        "a host name or an address",
        "Where `livewell serve` listens. Anything but this machine's own 127.0.0.1 belongs behind a proxy that speaks https.",
        default="127.0.0.1",
    )
    http_port: _Whole = _bounded(8484, 0, 65_535, "The port it listens on; 0 takes any free one.")
    hosts: _Hosts = _free(
        _HOSTS_ALLOWED,
        "Names by which the server may be called, besides 127.0.0.1, localhost and [::1]; others are refused (any port).",
        default=(),
    )
    origins: _Origins = _free(
        f"exact origins such as https://shop.example.com with commas between, at most {_HOSTS_MAX}; no path and no *",
        "Web pages of these origins may use the API with a key of theirs; never with our cookie.",
        default=(),
    )
    proxies: _Hosts = _free(
        _HOSTS_ALLOWED, "Addresses of proxies whose `X-Forwarded-For` and `-Proto` are believed.", default=()
    )
    jwt: _Issuers = _free(
        "a list of tables (in the environment: JSON) with name, issuer, audience, algorithm, key and optionally scopes_claim; see docs/howto/serve.md",
        "Who may say who a person is: issuers of JSON Web Tokens.",
        default=(),
    )
    key_cache_seconds: _Number = _bounded(
        10, 0, 60, "How long a server remembers a key; a revoked one is refused after this long at the latest."
    )
    login_seconds: _Number = _bounded(43_200, 60, 2_592_000, "How long a login by link lasts.")
    link_seconds: _Number = _bounded(900, 10, 86_400, "How long a login link waits to be used.")
    session_requests_per_second: _Number = _bounded(
        30,
        0.1,
        100_000,
        "Requests a second that one client may make to sessions, twice as many at once; a body counts as one more for every kilobyte.",
    )
    read_requests_per_second: _Number = _bounded(10, 0.1, 100_000, "The same for reading through (`/v1/data`).")
    requests_per_second: _Number = _bounded(20, 0.1, 100_000, "The same for everything else, and for failed logins.")
    body_bytes_max: _Whole = _bounded(262_144, 1024, 10_485_760, "The body of one request at most.")
    requests_max: _Whole = _bounded(
        200, 1, 100_000, "Requests one server works on at once; streams have their own bound."
    )
    streams_max: _Whole = _bounded(5000, 1, 100_000, "Streams one server holds at once.")
    user_streams_max: _Whole = _bounded(20, 1, 10_000, "Streams one user may have on one server.")
    push_send_seconds: _Number = _bounded(10, 0.1, 300, "A stream whose client takes nothing for this long is ended.")
    push_beat_seconds: _Number = _bounded(15, 0.1, 300, "How often a stream says that it is alive.")
    push_compare_seconds: _Number = _bounded(
        60, 1, 600, "How often a server compares all keys its streams follow: the bound for a very late commit."
    )
    push_rights_seconds: _Number = _bounded(60, 1, 600, "How often the rights of a stream are checked again.")

    alert_channels: _Channels = _free(
        "a list of tables (in the environment: JSON) with name, kind (webhook, discord, apprise), address (env:NAME), for a webhook secret (env:NAME), and optionally level (P0, P1, P2); see docs/howto/alerts.md",
        "Who is told of alerts. Addresses are secrets: each is the name of a variable that holds it.",
        default=(),
    )
    alert_send_seconds: _Number = _bounded(10, 0.1, 60, "How long a receiver of an alert may take to answer.")

    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = Field(
        default="info", description="The least severe line that is logged."
    )
    log_format: Annotated[Literal["text", "json"], BeforeValidator(_lower)] = Field(
        default="text", description="Lines for people, or one JSON object per line."
    )

    @classmethod
    def load(cls, **flags: object) -> Self:
        """Read flags, environment and livewell.toml; a flag that is None was not given. Raises ConfigurationError."""
        given, problems = _gather(flags)
        settings = cls._validate(given, problems)
        if settings is None or problems:
            # Raised out here, not while handling pydantic's error: that one carries the values, secrets too.
            raise ConfigurationError(_message(problems))
        return settings

    def masked(self) -> dict[str, str]:
        """Every setting as text, for printing; passwords are hidden."""
        return {name: _text(getattr(self, name)) for name in type(self).model_fields}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - pydantic-settings passes all by keyword
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments only: load() reads the rest, because an error must know where each value came from."""
        return (init_settings,)

    @field_validator("listen_url", mode="after")
    @classmethod
    def _listen_where_the_database_is(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        return value or info.data.get("database_url")

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        conflicts = list(_conflicts(self))
        if conflicts:
            text = "; ".join(conflict.text for conflict in conflicts)
            raise PydanticCustomError("conflict", "{text}", {"text": text, "conflicts": conflicts})
        return self

    @classmethod
    def _validate(cls, given: Mapping[str, "_Given"], problems: list[str]) -> Self | None:
        """Validate; then once more without the wrong values, so that conflicts among the others are told as well."""
        settings, details = cls._attempt(given)
        wrong = {str(detail["loc"][0]) for detail in details if detail["loc"]}
        places = {name: _places(name, details) for name in wrong}
        if wrong:
            _, details = cls._attempt({name: item for name, item in given.items() if name not in wrong})
        conflicts = [found for detail in details for found in detail.get("ctx", {}).get("conflicts", ())]
        problems[:0] = [_value_problem(name, item) + places[name] for name, item in given.items() if name in wrong]
        # A pair with a wrong half is not judged: the default in its place is not what the user meant.
        problems += [_conflict_problem(found, given) for found in conflicts if not wrong & set(found.names)]
        return settings

    @classmethod
    def _attempt(cls, given: Mapping[str, "_Given"]) -> tuple[Self | None, list[ErrorDetails]]:
        values: dict[str, Any] = {name: item.value for name, item in given.items()}
        try:
            return cls(**values), []
        except ValidationError as error:
            return None, error.errors(include_input=False, include_url=False)


@dataclass(frozen=True, slots=True)
class _Given:
    """A value, and what the user calls it."""

    label: str
    value: object = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Conflict:
    """Settings that are right alone and wrong together."""

    names: tuple[str, ...]
    text: str


_HEARTBEAT_RULE = (
    "lease_seconds must be at least 6 × heartbeat_seconds: recovery trusts a worker that renewed within a third of "
    "the lease, so two heartbeats must fit into that third"
)
_CALL_RULE = (
    "lease_seconds, from 30 on, must be more than call_timeout_seconds + 10: a renewal that ran into its deadline "
    "must fit in again before the lease is over"
)
_SERVER_RULE = "api_url, operate_url and hub_url go together, and with database_url: each is a login of its own"
_LISTEN_RULE = "listen_url needs database_url: the embedded server has its own address"


def _conflicts(settings: Settings) -> Iterator[_Conflict]:
    lease, heartbeat, call = settings.lease_seconds, settings.heartbeat_seconds, settings.call_timeout_seconds
    if lease < 6 * heartbeat - 1e-9:  # 6 × 0.1 is a little more than 0.6
        yield _Conflict(("lease_seconds", "heartbeat_seconds"), f"{_HEARTBEAT_RULE} (here {_text(6 * heartbeat)})")
    if lease >= 30 and lease <= call + 10:
        yield _Conflict(("lease_seconds", "call_timeout_seconds"), f"{_CALL_RULE} (here {_text(call + 10)})")
    servers = ("api_url", "operate_url", "hub_url")
    if any(getattr(settings, name) for name in servers) and not all(
        getattr(settings, name) for name in (*servers, "database_url")
    ):
        yield _Conflict((*servers, "database_url"), _SERVER_RULE)
    if settings.listen_url and not settings.database_url:
        yield _Conflict(("listen_url", "database_url"), _LISTEN_RULE)


def _gather(flags: Mapping[str, object]) -> tuple[dict[str, _Given], list[str]]:
    """Every value that is set, under the highest name that sets it, and what is wrong before any value is looked at."""
    problems: list[str] = []
    given = _from_file(problems)
    given |= _from_environment(problems)
    given |= _from_flags(flags, problems)
    return given, problems


def _from_flags(flags: Mapping[str, object], problems: list[str]) -> dict[str, _Given]:
    known = {name: f"{_flag(name)} (keyword {name})" for name in Settings.model_fields}
    problems += [
        f"{_flag(name)} (keyword {name}) is not a setting{_suggest(name, known)}" for name in flags if name not in known
    ]
    return {name: _Given(known[name], value) for name, value in flags.items() if name in known and value is not None}


def _from_environment(problems: list[str]) -> dict[str, _Given]:
    known = {_PREFIX + name.upper(): name for name in Settings.model_fields}
    given: dict[str, _Given] = {}
    if "DATABASE_URL" in os.environ:
        given["database_url"] = _Given("DATABASE_URL", os.environ["DATABASE_URL"])
    for variable in sorted(os.environ):
        if variable in known and not _is_foreign(variable):  # a service livewell-http makes LIVEWELL_HTTP_PORT=tcp://…
            given[known[variable]] = _Given(variable, os.environ[variable])
        elif variable.upper().startswith(_PREFIX) and not _is_foreign(variable):
            problems.append(f"{variable} (environment) is not a setting{_suggest(variable.upper(), known)}")
    return given


# A Kubernetes service called livewell-… puts LIVEWELL_…_SERVICE_HOST, LIVEWELL_…_PORT=tcp://… and more into every pod.
_KUBERNETES = re.compile(r"LIVEWELL_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)")


def _is_foreign(variable: str) -> bool:
    """Ours but no setting (tests, the file's path), or Kubernetes'."""
    if variable == "LIVEWELL_CONFIG" or variable.startswith("LIVEWELL_TEST_") or _KUBERNETES.fullmatch(variable):
        return True
    return variable.endswith("_PORT") and os.environ[variable].startswith(("tcp://", "udp://", "sctp://"))


def _from_file(problems: list[str]) -> dict[str, _Given]:
    path = os.environ.get("LIVEWELL_CONFIG")
    shown = _FILE if path is None else path
    values = _parse(shown, problems) if path is not None or Path(_FILE).exists() else {}
    for key in values:
        if key == "livewell" and isinstance(values[key], dict):
            problems.append(
                f"[livewell] in {shown} is not a setting. Settings stand at the top level: remove that line"
            )
        elif key not in Settings.model_fields:
            problems.append(f"{_show(key)} in {shown} is not a setting{_suggest(key, Settings.model_fields)}")
    return {key: _Given(f"{key} in {shown}", value) for key, value in values.items() if key in Settings.model_fields}


def _file_label(shown: str) -> str:
    return f"LIVEWELL_CONFIG={_show(shown)}" if "LIVEWELL_CONFIG" in os.environ else shown


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


def _suggest(name: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name[:100], known, n=1, cutoff=0.6)
    if not close:
        return ". All settings: docs/reference/settings.md"
    return f". Did you mean {close[0]}?"


def _message(problems: list[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    return f"{len(problems)} settings are wrong:" + "".join(f"\n  - {problem}" for problem in problems)


def _value_problem(name: str, item: _Given) -> str:
    return f"{item.label} is {_show_given(name, item.value)}; allowed is {_allowed(name)}"


def _places(name: str, details: Sequence[ErrorDetails]) -> str:
    """Which entries of a list of tables are wrong, and where: names of fields, never what stands there."""
    words: dict[str, None] = {}
    for detail in details:
        _, *place = detail["loc"] or ("",)
        if detail["loc"][:1] == (name,) and place and isinstance(place[0], int):
            field = str(place[1]) if len(place) > 1 else "what goes together"
            shown = field if _FIELD.fullmatch(field) else "a field that is not known"
            words[f"{shown} of number {place[0] + 1}"] = None
    return f". Look at: {', '.join(words)}" if words else ""


_FIELD = re.compile(r"[a-z_ ]{1,30}")


def _conflict_problem(conflict: _Conflict, given: Mapping[str, _Given]) -> str:
    parts = [
        f"{given[name].label} is {_show_given(name, given[name].value)}"
        if name in given
        else f"{name} is {_text(Settings.model_fields[name].default)} (default)"
        for name in conflict.names
    ]
    return f"{' and '.join(parts)}: {conflict.text}"


_ADDRESSES = ("database_url", "listen_url", "api_url", "operate_url", "hub_url")

# The addresses people mistake for ours; anything else before :// may itself be a secret.
_SCHEME = re.compile(r"(jdbc:)?(postgres(ql)?|mysql|mariadb|sqlite|redis|mongodb|https?)(\+[a-z0-9]{1,12})?://")


def _show_given(name: str, value: object) -> str:
    """The value as an error shows it; of a secret only the scheme, for what is no address cannot be masked surely."""
    if isinstance(value, str) and not value.strip():
        return "empty"
    if name == "alert_channels":
        return MASK  # somebody may have written an address where its variable belongs
    if name not in _ADDRESSES:
        return _show(value)
    secret = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
    scheme = _SCHEME.match(secret)
    return f"{scheme[0] if scheme else ''}{MASK}"


def _show(value: object) -> str:
    text = redact(repr(value))
    return text if len(text) <= _SHOWN_CHARS_MAX else text[:_SHOWN_CHARS_MAX] + "…"


def _text(value: object) -> str:
    if isinstance(value, SecretStr):
        return mask_url(value.get_secret_value())
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, tuple):
        return ", ".join(one if isinstance(one, str) else one.name for one in value) or "none"
    return "not set" if value is None else str(value)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _allowed(name: str) -> str:
    """What a setting accepts, in words."""
    info = Settings.model_fields[name]
    if isinstance(info.json_schema_extra, dict):
        return str(info.json_schema_extra["allowed"])
    if get_origin(info.annotation) is Literal:
        return "one of " + ", ".join(get_args(info.annotation))
    low, high = _range(name)
    kind = "a whole number" if info.annotation is int else "a number"
    return f"{kind} from {_text(low)} to {_text(high)}"


def _range(name: str) -> tuple[float, float]:
    bounds = Settings.model_fields[name].metadata
    low = next(bound.ge for bound in bounds if hasattr(bound, "ge"))
    high = next(bound.le for bound in bounds if hasattr(bound, "le"))
    return low, high


# The first setting of each section, in the order of the fields.
_SECTIONS = {
    "database_url": "Where things are",
    "pool_size_max": "Connections",
    "heartbeat_seconds": "Leases and recovery",
    "worker_slots": "Workers",
    "payload_bytes_max": "Bounds and housekeeping",
    "outbound_hosts": "Calls to upstreams",
    "store_batch_max": "Refreshes and viewers",
    "http_host": "The HTTP server",
    "alert_channels": "Alerts",
    "log_level": "Logging",
}

_PAGE_HEAD = """\
# Settings

<!-- Made by `python -m livewell.settings > docs/reference/settings.md`; do not edit. -->

A setting is given, the first that has a value wins:

1. as a flag or keyword: `--lease-seconds 45`, `Settings.load(lease_seconds=45)`
2. in the environment: `LIVEWELL_LEASE_SECONDS=45`
3. at the top level of `livewell.toml` in the current folder, or of the file named by `LIVEWELL_CONFIG`:
   `lease_seconds = 45`

All are checked at start-up. A wrong value, an unknown `LIVEWELL_*` variable or an unknown key in the file ends the
program with exit code 2 and a line that names it. An empty variable is a wrong value: unset it instead.
`LIVEWELL_TEST_*` variables, and those Kubernetes makes for a service called `livewell…`, are left alone. Relative paths
start at the current folder.
"""


def reference_page() -> str:
    """The text of docs/reference/settings.md."""
    lines = [_PAGE_HEAD]
    for name, info in Settings.model_fields.items():
        if name in _SECTIONS:
            lines += [*([""] if len(lines) > 1 else []), f"## {_SECTIONS[name]}", ""]
            lines += ["| setting | default | allowed | meaning |", "|---|---|---|---|"]
        lines.append(f"| `{name}` | {_text(info.default)} | {_allowed(name)} | {info.description} |")
    rules = (_HEARTBEAT_RULE, _CALL_RULE, _SERVER_RULE, _LISTEN_RULE)
    lines += ["", "## Together", "", *(f"- {rule}." for rule in rules), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(reference_page())
