"""The settings themselves, and the one way to make them.

`Settings.load()` reads flags, environment and file, and raises one ConfigurationError that lists
every wrong value under the name the user gave it. `Settings(...)` itself reads nothing but its
arguments, so a test never runs against the DATABASE_URL of whoever started it.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
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
from livewell.settings.exports import ExportSettings
from livewell.settings.rules import conflict_problem, conflicts, value_problem
from livewell.settings.sources import Given, gather
from livewell.settings.tables import Channels, Issuers, Sinks, Topics
from livewell.settings.values import HOSTS_MAX, Address, Folder, Hosts, Number, Origins, Whole, lower
from livewell.settings.values import bounded as _bounded
from livewell.settings.values import free as _free
from livewell.settings.words import message, places_of, text, typed

_HOSTS_ALLOWED = f"exact host names with commas between, at most {HOSTS_MAX}; no scheme, port or *"
_ADDRESS_ALLOWED = "postgresql://user:password@host:port/name, or host=… dbname=…"


class Settings(ExportSettings):
    """The validated configuration, frozen. Make it with `Settings.load()`."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, validate_default=True)

    database_url: Address | None = _free(
        _ADDRESS_ALLOWED,
        "Where Postgres is; may be a pooler in transaction mode. Not set: an embedded server is started. "
        "`DATABASE_URL` is read too; `LIVEWELL_DATABASE_URL` wins.",
    )
    listen_url: Address | None = _free(
        _ADDRESS_ALLOWED,
        "A direct address for LISTEN, where `database_url` is a transaction pooler. Not set: `database_url`.",
    )
    api_url: Address | None = _free(
        _ADDRESS_ALLOWED,
        "Where `livewell serve` logs in for viewers' requests, as a member of `livewell_api`. Not needed on the "
        "embedded server, nor with `roles` none.",
    )
    operate_url: Address | None = _free(
        _ADDRESS_ALLOWED, "The same for operators' requests, as a member of `livewell_operate`."
    )
    hub_url: Address | None = _free(_ADDRESS_ALLOWED, "The same for streams, as a member of `livewell_hub`.")
    data_dir: Folder | None = _free("a path", "The embedded server's folder. Not set: chosen by Livewell.")
    postgres_bin: Folder | None = _free(
        "a path", "The folder with `postgres` and `initdb` for the embedded server. Not set: found."
    )
    roles: Annotated[Literal["create", "none"], BeforeValidator(lower)] = Field(
        default="create",
        description="Whether `migrate` may create the `livewell_*` roles; `none` where the server does not let it.",
    )
    app: str | None = _free(
        "module:attribute, for example shop.jobs:app",
        "The Livewell app the command line runs.",
        pattern=r"^[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*$",
        max_length=200,
    )

    pool_size_max: Whole = _bounded(10, 1, 200, "Connections one process holds at most.")
    pool_wait_seconds: Number = _bounded(5, 0.001, 60, "How long a call waits for a free connection.")
    call_timeout_seconds: Number = _bounded(
        10, 0.1, 300, "Our own deadline on every database call; a half-open connection ignores all others."
    )
    statement_timeout_seconds: Number = _bounded(30, 0.1, 3600, "Postgres ends a statement after this long.")
    idle_in_transaction_seconds: Number = _bounded(
        60, 0.1, 3600, "Postgres ends a session that leaves a transaction open and idle for this long."
    )
    connect_timeout_seconds: Number = _bounded(
        5, 1, 60, "How long opening one connection may take; libpq counts whole seconds, and at least 2."
    )
    sync_wait_seconds: Number = _bounded(60, 0.1, 3600, "How long a call through `app.sync` waits for its answer.")

    heartbeat_seconds: Number = _bounded(5, 0.05, 60, "How often a worker renews its lease.")
    lease_seconds: Number = _bounded(
        45, 0.5, 3600, "After this long without a renewal a worker is lost and its jobs are taken back."
    )
    poll_seconds: Number = _bounded(1, 0.02, 60, "How often an idle worker asks for jobs when no nudge arrives.")
    maintain_seconds: Number = _bounded(1, 0.05, 60, "How often lost jobs are recovered and delayed jobs become ready.")
    lost_max: Whole = _bounded(5, 1, 100, "A job that was lost with its worker this often becomes a dead letter.")
    deadline_grace_seconds: Number = _bounded(
        5, 0.1, 300, "A job this long past its deadline is taken back, whoever holds it."
    )

    worker_slots: Whole = _bounded(20, 1, 1000, "Jobs one worker runs at once.")
    # 2000 and 1000: a drain was 8 to 10 % faster than with 1000 and 500. A worker holds so many
    # only of jobs that take less than 50 µs.
    prefetch_max: Whole = _bounded(2000, 1, 10_000, "Jobs one worker holds at most, running or waiting.")
    finish_batch_max: Whole = _bounded(1000, 1, 5000, "Jobs finished in one call at most.")
    finish_delay_ms: Number = _bounded(3, 0, 1000, "How long a finished job waits for others to share its call.")
    grace_seconds: Number = _bounded(
        25, 0, 3600, "How long a stopping worker lets running jobs end before it hands them back."
    )
    task_timeout_seconds: Number = _bounded(300, 0.1, 86_400, "A handler's time limit, where its task states none.")
    stuck_threads_max: Whole = _bounded(
        8, 1, 1000, "Threads a worker leaves to handlers that ignored their timeout, at most: a thread cannot be ended."
    )

    payload_bytes_max: Whole = _bounded(
        262_144, 1, 262_144, "A job's arguments as JSON, at most; the database refuses more than 262144."
    )
    enqueue_batch_max: Whole = _bounded(10_000, 1, 100_000, "Jobs in one enqueue call at most.")
    history_days: Whole = _bounded(7, 1, 365, "How long finished jobs are kept.")
    history_days_ahead: Whole = _bounded(14, 2, 60, "How many days of history partitions are made in advance.")
    event_days: Whole = _bounded(7, 1, 365, "How long events are kept after their last delivery.")
    inbox_days: Whole = _bounded(14, 1, 60, "How long an inbox remembers the events that it has seen.")
    relay_batch_seconds: Number = _bounded(0.25, 0.01, 30, "A relay makes its batches as large as fit into this time.")
    dead_days: Whole = _bounded(30, 30, 3650, "How long dead letters are kept; never reduced below 30 days.")
    stat_days: Whole = _bounded(30, 1, 365, "How long statistics are kept.")
    audit_days: Whole = _bounded(90, 90, 3650, "How long it is kept what operators did; never reduced below 90 days.")
    run_days: Whole = _bounded(30, 30, 3650, "How long the runs of schedules are kept; never reduced below 30 days.")
    progress_seconds: Number = _bounded(1, 0.05, 60, "A job's progress is written at most this often.")
    stat_seconds: Number = _bounded(10, 0.1, 300, "How often a worker writes its statistics.")
    nudge_ms: Number = _bounded(20, 1, 1000, "At most one nudge per channel in this time.")
    listen_check_seconds: Number = _bounded(10, 0.1, 300, "How often the listener proves that it still hears.")

    outbound_hosts: Hosts = _free(
        _HOSTS_ALLOWED,
        "The only hosts that upstream calls may go to, with https, and only while their addresses are public.",
        default=("financialmodelingprep.com",),
    )
    outbound_private_hosts: Hosts = _free(
        _HOSTS_ALLOWED,
        "Hosts that may be called too, with http as well, and may be on this machine or network.",
        default=(),
    )

    store_batch_max: Whole = _bounded(200, 1, 2000, "Refreshed keys stored in one transaction at most.")
    viewer_heartbeat_seconds: Number = _bounded(
        60,
        0.1,
        240,
        "How often `app.watch` says that it is still there; a viewer unseen for five minutes does not count.",
    )
    watch_keys_max: Whole = _bounded(1000, 1, 10_000, "Keys one `app.watch` may follow at most.")
    watched_keys_max: Whole = _bounded(
        20_000,
        1,
        1_000_000,
        "Keys one process follows at most, for watches and for reads that wait; beyond it reads do not wait.",
    )
    client_keys_max: Whole = _bounded(
        1000,
        1,
        1_000_000,
        "Of these, keys that one client of a server may follow: a user, or one address with a public key. Less "
        "while more than half of all are followed; what does not fit is `capped`.",
    )
    watched_bytes_max: Whole = _bounded(
        268_435_456,
        1_048_576,
        4_294_967_296,
        "Bytes of values one process keeps of the keys it follows; a value beyond it is read again for the next "
        "who comes.",
    )
    subscriptions_max: Whole = _bounded(1000, 1, 100_000, "Keys one user may watch at once, in all sessions together.")
    public_sessions_max: Whole = _bounded(
        10_000,
        1,
        1_000_000,
        "Sessions that the strangers of one public key may have open at a time, unless the key says otherwise "
        "(`keys create --sessions-max`); those of one address a tenth of it.",
    )
    cold_reads_max: Whole = _bounded(
        20,
        1,
        10_000,
        "Keys that nobody ever asked for which one user may bring up in a minute; the strangers of one address "
        "twice, of one public key six times as many.",
    )

    http_host: Annotated[str, AfterValidator(host_name)] = _free(
        "a host name or an address",
        "Where `livewell serve` listens. Anything but this machine's own 127.0.0.1 belongs behind a proxy that "
        "speaks https.",
        default="127.0.0.1",
    )
    http_port: Whole = _bounded(8484, 0, 65_535, "The port it listens on; 0 takes any free one.")
    hosts: Hosts = _free(
        _HOSTS_ALLOWED,
        "Names by which the server may be called, besides 127.0.0.1, localhost and [::1]; others are refused "
        "(any port).",
        default=(),
    )
    origins: Origins = _free(
        f"exact origins such as https://shop.example.com with commas between, at most {HOSTS_MAX}; no path and no *",
        "Web pages of these origins may use the API with a key of theirs; never with our cookie.",
        default=(),
    )
    proxies: Hosts = _free(
        _HOSTS_ALLOWED, "Addresses of proxies whose `X-Forwarded-For` and `-Proto` are believed.", default=()
    )
    jwt: Issuers = _free(
        "a list of tables (in the environment: JSON) with name, issuer, audience, algorithm, key and optionally "
        "scopes_claim; see livewell docs howto/serve",
        "Who may say who a person is: issuers of JSON Web Tokens.",
        default=(),
    )
    key_cache_seconds: Number = _bounded(
        10, 0, 60, "How long a server remembers a key; a revoked one is refused after this long at the latest."
    )
    login_seconds: Number = _bounded(43_200, 60, 2_592_000, "How long a login by link lasts.")
    link_seconds: Number = _bounded(900, 10, 86_400, "How long a login link waits to be used.")
    session_requests_per_second: Number = _bounded(
        30,
        0.1,
        100_000,
        "Requests a second that one client may make to sessions, twice as many at once; a body counts as one "
        "more for every kilobyte.",
    )
    read_requests_per_second: Number = _bounded(10, 0.1, 100_000, "The same for reading through (`/v1/data`).")
    requests_per_second: Number = _bounded(20, 0.1, 100_000, "The same for everything else, and for failed logins.")
    body_bytes_max: Whole = _bounded(262_144, 1024, 10_485_760, "The body of one request at most.")
    requests_max: Whole = _bounded(
        200, 1, 100_000, "Requests one server works on at once; streams have their own bound."
    )
    connections_max: Whole = _bounded(
        10_000, 8, 1_000_000, "Connections one server holds at once; fewer where the process may open fewer files."
    )
    address_connections_max: Whole = _bounded(
        500,
        4,
        1_000_000,
        "Connections of one address (of IPv6: one /64), and a quarter of all at most. Proxies in "
        "LIVEWELL_PROXIES are not counted.",
    )
    head_seconds: Number = _bounded(10, 0.2, 300, "Within this the head of a request has to be complete.")
    body_seconds: Number = _bounded(30, 0.2, 600, "Within this the whole body of a request has to be there.")
    answer_seconds: Number = _bounded(
        30, 0.2, 600, "Within this the client has to take an answer; streams have their own bound."
    )
    streams_max: Whole = _bounded(5000, 1, 100_000, "Streams one server holds at once.")
    user_streams_max: Whole = _bounded(20, 1, 10_000, "Streams one user may have on one server.")
    user_pages_max: Whole = _bounded(
        6, 1, 10_000, "Different pages of the dashboard that one user may follow live on one server."
    )
    push_send_seconds: Number = _bounded(10, 0.1, 300, "A stream whose client takes nothing for this long is ended.")
    push_beat_seconds: Number = _bounded(15, 0.1, 300, "How often a stream says that it is alive.")
    push_compare_seconds: Number = _bounded(
        60, 1, 600, "How often a server compares all keys its streams follow: the bound for a very late commit."
    )
    push_rights_seconds: Number = _bounded(60, 1, 600, "How often the rights of a stream are checked again.")

    resume_documents_max: Whole = _bounded(100, 1, 10_000, "Documents one user may have.")
    resume_bytes_max: Whole = _bounded(
        200_000, 1024, 5_000_000, "One version of a document at most; `body_bytes_max` bounds what a request brings."
    )
    resume_versions_max: Whole = _bounded(30, 1, 1000, "Versions of a document that are kept; the oldest goes first.")
    resume_user_bytes_max: Whole = _bounded(
        50_000_000, 100_000, 9_000_000_000, "All versions of all documents of one user at most."
    )

    alert_channels: Channels = _free(
        "a list of tables (in the environment: JSON) with name, kind (webhook, discord, apprise), address "
        "(env:NAME), for a webhook secret (env:NAME), and optionally level (P0, P1, P2); see livewell docs "
        "howto/alerts",
        "Who is told of alerts. Addresses are secrets: each is the name of a variable that holds it.",
        default=(),
    )
    alert_send_seconds: Number = _bounded(10, 0.1, 60, "How long a receiver of an alert may take to answer.")

    sinks: Sinks = _free(
        "a list of tables (in the environment: JSON) with name, kind, address (env:NAME), and optionally topics, "
        "options, ordered, attempts, batch_max, backoff_base_seconds, backoff_cap_seconds, deadline_seconds, rate; see "
        "livewell docs howto/outbox_operate",
        "Where the outbox sends events, beside the sinks that the app declares itself. Addresses are secrets: each "
        "is the name of a variable that holds it.",
        default=(),
    )
    topics: Topics = _free(
        "a list of tables (in the environment: JSON) with name, and optionally on_dead (continue, park) and "
        "payload_bytes_max",
        "Kinds of events that may be emitted, beside those that the app declares itself.",
        default=(),
    )

    metrics_address: str | None = _free(
        "host:port, for example 127.0.0.1:9400; [::1]:9400 for IPv6; port 0 takes any free one",
        "Where a worker serves what it counted, for Prometheus; not at all, if not given. With several "
        "processes each has a port of its own, counted up from this one. Nobody logs in there: keep it on a "
        "private network.",
        pattern=r"^(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):([0-9]|[1-9][0-9]{1,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$",
        max_length=260,
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(lower)] = Field(
        default="info", description="The least severe line that is logged."
    )
    log_format: Annotated[Literal["text", "json"], BeforeValidator(lower)] = Field(
        default="text", description="Lines for people, or one JSON object per line."
    )

    @classmethod
    def load(cls, **flags: object) -> Self:
        """Read flags, environment and livewell.toml; a flag that is None was not given.

        Raises ConfigurationError.
        """
        given, problems = gather(cls.model_fields, flags)
        settings = cls._validate(given, problems)
        if settings is None or problems:
            # Raised out here, not while handling pydantic's error: that one carries the values,
            # secrets too.
            raise ConfigurationError(message(problems))
        return settings

    def masked(self) -> dict[str, str]:
        """Every setting as text, for printing; passwords are hidden."""
        return {name: text(getattr(self, name)) for name in type(self).model_fields}

    def typed(self) -> dict[str, object]:
        """Every setting as JSON has it, for programs: numbers are numbers, null is not set.

        Passwords are hidden.
        """
        return {name: typed(getattr(self, name)) for name in type(self).model_fields}

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
        found = list(conflicts(self))
        if found:
            told = "; ".join(conflict.text for conflict in found)
            raise PydanticCustomError("conflict", "{text}", {"text": told, "conflicts": found})
        return self

    @classmethod
    def _validate(cls, given: Mapping[str, Given], problems: list[str]) -> Self | None:
        """Validate.

        Then once more without the wrong values, so that conflicts among the others are told as
        well.
        """
        settings, details = cls._attempt(given)
        wrong = {str(detail["loc"][0]) for detail in details if detail["loc"]}
        places = {name: places_of(name, details) for name in wrong}
        if wrong:
            _, details = cls._attempt({name: item for name, item in given.items() if name not in wrong})
        together = [found for detail in details for found in detail.get("ctx", {}).get("conflicts", ())]
        fields = cls.model_fields
        problems[:0] = [
            value_problem(name, item, fields[name]) + places[name] for name, item in given.items() if name in wrong
        ]
        # A pair with a wrong half is not judged: the default in its place is not what the user
        # meant.
        problems += [conflict_problem(found, given, fields) for found in together if not wrong & set(found.names)]
        return settings

    @classmethod
    def _attempt(cls, given: Mapping[str, Given]) -> tuple[Self | None, list[ErrorDetails]]:
        values: dict[str, Any] = {name: item.value for name, item in given.items()}
        try:
            return cls(**values), []
        except ValidationError as error:
            return None, error.errors(include_input=False, include_url=False)
