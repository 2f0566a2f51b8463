"""Settings: where a value comes from, what is refused and how the refusal reads, and that no password gets out."""

import json
import os
import traceback
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from livewell.errors import ConfigurationError
from livewell.settings import Settings
from livewell.settings.page import reference_page

CANARY = "hunter2canary"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty folder, and an environment without a word about Livewell."""
    for variable in list(os.environ):
        if variable.upper().startswith("LIVEWELL_") or variable == "DATABASE_URL":
            monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)


def refusal(**flags: object) -> str:
    """The message of the error that load() must raise."""
    with pytest.raises(ConfigurationError) as caught:
        Settings.load(**flags)
    return str(caught.value)


def write(text: str) -> None:
    Path("livewell.toml").write_text(text, encoding="utf-8")


def secret(value: SecretStr | None) -> str | None:
    return value.get_secret_value() if value else None


class TestWhereAValueComesFrom:
    def test_nothing_set_gives_the_defaults(self) -> None:
        """The figures the mission states hold without any configuration."""
        loaded = Settings.load()

        assert loaded == Settings()
        assert (loaded.heartbeat_seconds, loaded.lease_seconds, loaded.poll_seconds) == (5, 45, 1)
        assert (loaded.maintain_seconds, loaded.payload_bytes_max, loaded.history_days) == (1, 262_144, 7)
        assert loaded.database_url is None

    def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each source is silenced in turn, and the next one speaks."""
        write("worker_slots = 3\nlost_max = 3\nstat_days = 3\n")
        monkeypatch.setenv("LIVEWELL_WORKER_SLOTS", "2")
        monkeypatch.setenv("LIVEWELL_LOST_MAX", "2")

        loaded = Settings.load(worker_slots=1)

        assert (loaded.worker_slots, loaded.lost_max, loaded.stat_days, loaded.history_days) == (1, 2, 3, 7)

    def test_a_flag_of_none_was_not_given(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The command line passes None for an option nobody typed."""
        monkeypatch.setenv("LIVEWELL_WORKER_SLOTS", "2")

        assert Settings.load(worker_slots=None).worker_slots == 2

    def test_livewell_config_names_another_file(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """The file in the current folder is then not read."""
        write("worker_slots = 3\n")
        (tmp_path / "other.toml").write_text("lost_max = 3\n", encoding="utf-8")
        monkeypatch.setenv("LIVEWELL_CONFIG", str(tmp_path / "other.toml"))

        loaded = Settings.load()

        assert (loaded.worker_slots, loaded.lost_max) == (20, 3)

    def test_a_byte_order_mark_in_the_file_is_forgiven(self) -> None:
        """Editors on Windows write one."""
        Path("livewell.toml").write_bytes(b"\xef\xbb\xbfworker_slots = 3\n")

        assert Settings.load().worker_slots == 3

    def test_database_url_is_read_and_our_own_name_wins(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """DATABASE_URL may belong to the rest of the user's program.

        A wrong one does not matter beside ours.
        """
        monkeypatch.setenv("DATABASE_URL", "postgresql://theirs/x")
        theirs = Settings.load()
        monkeypatch.setenv("DATABASE_URL", "mysql://theirs/x")
        monkeypatch.setenv("LIVEWELL_DATABASE_URL", "postgres://ours/x")

        assert secret(theirs.database_url) == "postgresql://theirs/x"
        assert secret(Settings.load().database_url) == "postgres://ours/x"

    def test_listening_uses_the_database_address_unless_told_otherwise(self) -> None:
        """Only behind a pooler do the two differ."""
        plain = Settings.load(database_url="host=db dbname=shop")
        pooled = Settings.load(database_url="postgresql://pooler/x", listen_url=SecretStr("postgresql://db/x\n"))

        assert secret(plain.listen_url) == "host=db dbname=shop"
        assert secret(pooled.listen_url) == "postgresql://db/x"

    def test_the_class_itself_reads_only_its_arguments(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A test that makes Settings() never runs against the database of whoever started it."""
        monkeypatch.setenv("DATABASE_URL", "postgresql://production/x")
        monkeypatch.setenv("LIVEWELL_WORKER_SLOTS", "2")
        write("lost_max = 3\n")

        assert Settings().masked() == {**Settings().masked(), "database_url": "not set", "worker_slots": "20"}
        assert Settings().lost_max == 5

    def test_a_path_may_start_at_home(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """No shell expands ~ in a file."""
        monkeypatch.setenv("HOME", str(tmp_path))
        write('data_dir = "~/pg"\n')

        assert Settings.load().data_dir == tmp_path / "pg"

    def test_words_may_be_written_in_capitals(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """LOG_LEVEL=INFO is what everybody writes."""
        monkeypatch.setenv("LIVEWELL_LOG_LEVEL", "WARNING")

        assert Settings.load().log_level == "warning"

    def test_settings_cannot_be_changed(self) -> None:
        """What was checked at start-up is what runs."""
        with pytest.raises(ValidationError, match="frozen"):
            Settings().lease_seconds = 1

    @pytest.mark.parametrize(
        "variable",
        ["LIVEWELL_TEST_DSN", "LIVEWELL_SERVICE_HOST", "LIVEWELL_API_SERVICE_PORT_HTTP", "LIVEWELL_PORT_80_TCP_ADDR"],
    )
    def test_variables_that_are_not_settings_are_left_alone(
        self, monkeypatch: pytest.MonkeyPatch, variable: str
    ) -> None:
        """The tests have their own, and Kubernetes makes some for every service called livewell."""
        monkeypatch.setenv(variable, "x")
        monkeypatch.setenv("LIVEWELL_PORT", "tcp://10.0.0.1:80")

        assert Settings.load() == Settings()


class TestARefusal:
    def test_names_the_variable_the_value_and_what_is_allowed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """S8, for the environment."""
        monkeypatch.setenv("LIVEWELL_LEASE_SECONDS", "soon")

        assert refusal() == "LIVEWELL_LEASE_SECONDS is 'soon'; allowed is a number from 0.5 to 3600"

    def test_names_the_key_and_the_file(self) -> None:
        """S8, for livewell.toml."""
        write("lease_seconds = 0.1\n")

        assert refusal() == "lease_seconds in livewell.toml is 0.1; allowed is a number from 0.5 to 3600"

    def test_names_the_flag_and_the_keyword(self) -> None:
        """S8, for the command line and for Python."""
        message = "--lease-seconds (keyword lease_seconds) is 9999; allowed is a number from 0.5 to 3600"

        assert refusal(lease_seconds=9999) == message

    def test_blames_the_source_that_won(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A good value further down does not matter, nor is it named."""
        write("worker_slots = 3\n")
        monkeypatch.setenv("LIVEWELL_WORKER_SLOTS", "0")

        assert refusal() == "LIVEWELL_WORKER_SLOTS is '0'; allowed is a whole number from 1 to 1000"

    def test_lists_everything_that_is_wrong(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Wrong values, unknown names and values that do not go together, in one message."""
        write('lost_max = "many"\nlog_levle = "info"\n')
        monkeypatch.setenv("LIVEWELL_ROLES", "maybe")
        monkeypatch.setenv("LIVEWELL_HEARTBEAT_SECONDS", "10")

        assert refusal(worker_slot=1).splitlines() == [
            "5 settings are wrong:",
            "  - lost_max in livewell.toml is 'many'; allowed is a whole number from 1 to 100",
            "  - LIVEWELL_ROLES is 'maybe'; allowed is one of create, none",
            "  - 'log_levle' in livewell.toml is not a setting. Did you mean log_level?",
            "  - --worker-slot (keyword worker_slot) is not a setting. Did you mean worker_slots?",
            (
                "  - lease_seconds is 45 (default) and LIVEWELL_HEARTBEAT_SECONDS is '10': lease_seconds must be at "
                "least 6 × heartbeat_seconds: recovery trusts a worker that renewed within a third of the lease, so "
                "two heartbeats must fit into that third (here 60)"
            ),
        ]

    def test_does_not_judge_a_pair_of_which_one_is_wrong_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The default in its place is not what the user meant."""
        monkeypatch.setenv("LIVEWELL_HEARTBEAT_SECONDS", "20")

        assert refusal(lease_seconds="long").count("\n") == 0

    @pytest.mark.parametrize(
        ("variable", "suggestion"),
        [
            ("LIVEWELL_LEASE_SECOND", "Did you mean LIVEWELL_LEASE_SECONDS?"),
            ("LIVEWELL_DATABSE_URL", "Did you mean LIVEWELL_DATABASE_URL?"),
            ("livewell_lease_seconds", "Did you mean LIVEWELL_LEASE_SECONDS?"),
            ("LIVEWELL_XYZZY_QUUX_FROBNICATE_ZQ", "All settings: livewell docs reference/settings"),
        ],
    )
    def test_of_an_unknown_variable_suggests_the_nearest(
        self, monkeypatch: pytest.MonkeyPatch, variable: str, suggestion: str
    ) -> None:
        """A typo must not leave the default in force unnoticed; its value is never shown."""
        monkeypatch.setenv(variable, CANARY)

        message = refusal()

        assert message.startswith(f"{variable} (environment) is not a setting. ")
        assert message.endswith(suggestion)
        assert CANARY not in message

    def test_knows_a_typo_from_a_variable_of_kubernetes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Kubernetes puts an address into LIVEWELL_PORT; a number there was meant for us."""
        monkeypatch.setenv("LIVEWELL_PORT", "8080")

        assert refusal().startswith("LIVEWELL_PORT (environment) is not a setting. ")

    def test_of_a_livewell_table_says_where_settings_stand(self) -> None:
        """The mistake most people will make with the file."""
        write("[livewell]\nlease_seconds = 45\n")

        assert refusal() == (
            "[livewell] in livewell.toml is not a setting. Settings stand at the top level: remove that line"
        )

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (
                b"worker_slots = 3\nlost_max =\n",
                "livewell.toml is not valid TOML: Invalid value (at line 2, column 11)",
            ),
            (b"worker_slots = 3\n# caf\xe9\n", "livewell.toml is not UTF-8 text (at line 2)"),
            (b"#" * 1_048_577, "livewell.toml is larger than 1048576 bytes; a settings file is small"),
        ],
        ids=["malformed", "latin-1", "huge"],
    )
    def test_of_a_file_that_cannot_be_understood_gives_the_line(self, content: bytes, message: str) -> None:
        """Malformed, in another encoding, or no settings file at all."""
        Path("livewell.toml").write_bytes(content)

        assert refusal() == message

    def test_of_a_missing_file_names_the_variable_that_asked_for_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The default file may be absent; one that was asked for may not."""
        monkeypatch.setenv("LIVEWELL_CONFIG", "/nowhere/livewell.toml")

        assert refusal() == "LIVEWELL_CONFIG='/nowhere/livewell.toml' cannot be read: No such file or directory"

    @pytest.mark.parametrize("name", ["database_url", "data_dir", "app", "roles", "lease_seconds", "worker_slots"])
    def test_of_an_empty_variable_says_so(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        """DATABASE_URL=$UNSET must not quietly start an embedded database in production."""
        monkeypatch.setenv(f"LIVEWELL_{name.upper()}", " ")

        assert refusal().startswith(f"LIVEWELL_{name.upper()} is empty; allowed is ")

    @pytest.mark.parametrize(
        "flags",
        [
            {"lease_seconds": True},
            {"lease_seconds": "nan"},
            {"lease_seconds": float("inf")},
            {"worker_slots": True},
            {"worker_slots": 1.5},
            {"worker_slots": "9" * 5000},
            {"app": "no_colon"},
            {"app": 5},
            {"data_dir": 5},
            {"data_dir": "~nobody-has-this-name/x"},
            {"data_dir": "a\0b"},
            {"lease_seconds": {"a": 1}},
            {"payload_bytes_max": 262_145},
            {"dead_days": 29},
            {"database_url": "postgresql+psycopg://db/x"},
            {"database_url": "db.example"},
            {"database_url": 5},
            {"database_url": f"postgresql://me:{CANARY}@db/\0"},
        ],
        ids=lambda flags: str(flags)[:50],
    )
    def test_meets_every_value_that_only_looks_right(self, flags: dict[str, Any]) -> None:
        """Booleans, infinities, tables, other drivers' addresses; and the message stays short."""
        message = refusal(**flags)

        assert "; allowed is " in message
        assert len(message) < 300
        assert CANARY not in message

    def test_shows_the_scheme_of_an_address_that_is_not_ours(self) -> None:
        """Enough to see the mistake, nothing of the rest."""
        message = refusal(database_url=f"mysql://root:{CANARY}@db/x")

        assert message.startswith("--database-url (keyword database_url) is mysql://***; allowed is postgresql://")


class TestSettingsThatBelongTogether:
    @pytest.mark.parametrize(
        ("lease", "heartbeat", "call"), [(30, 5, 10), (2, 2 / 6, 10), (0.6, 0.1, 300), (29.9, 1, 300), (45, 5, 34.9)]
    )
    def test_the_bounds_themselves_are_allowed(self, lease: float, heartbeat: float, call: float) -> None:
        """Six heartbeats exactly, in spite of binary fractions.

        Short leases (tests) do not look at the call's deadline.
        """
        loaded = Settings.load(lease_seconds=lease, heartbeat_seconds=heartbeat, call_timeout_seconds=call)

        assert loaded.lease_seconds == lease

    @pytest.mark.parametrize(
        ("flags", "rule"),
        [
            ({"lease_seconds": 29}, "at least 6 × heartbeat_seconds"),
            ({"call_timeout_seconds": 35}, "more than call_timeout_seconds + 10"),
            ({"listen_url": "host=db"}, "listen_url needs database_url"),
        ],
    )
    def test_a_broken_rule_is_told_with_its_reason(self, flags: dict[str, Any], rule: str) -> None:
        """Both by load() and by the class itself."""
        assert rule in refusal(**flags)
        with pytest.raises(ValidationError) as caught:
            Settings(**flags)
        assert rule in str(caught.value)


class TestSecrets:
    GOOD = f"postgresql://me:{CANARY}@db/shop?sslpassword={CANARY}"

    @pytest.mark.parametrize("address", [GOOD, f"host=db password='{CANARY}' dbname=shop"])
    def test_a_password_is_in_no_way_of_printing_settings(self, address: str) -> None:
        """str, repr, format, JSON, masked. Proven by declaring database_url as str: this fails."""
        loaded = Settings.load(database_url=address)
        printed = [
            *(str(loaded), repr(loaded), f"{loaded}", f"{loaded.database_url}", repr(loaded.__dict__)),
            *(str(loaded.masked()), str(loaded.model_dump()), loaded.model_dump_json(), json.dumps(loaded.masked())),
        ]

        assert [text for text in printed if CANARY in text] == []
        assert CANARY in (secret(loaded.database_url) or "")

    def test_masked_keeps_what_helps(self) -> None:
        """Where the database is, and as whom."""
        masked = Settings.load(database_url=self.GOOD, poll_seconds=0.25).masked()

        assert masked["database_url"] == "postgresql://me:***@db/shop?sslpassword=***"
        assert masked["listen_url"] == masked["database_url"]
        assert (masked["poll_seconds"], masked["lease_seconds"], masked["app"]) == ("0.25", "45", "not set")
        assert list(masked) == list(Settings.model_fields)

    @pytest.mark.parametrize(
        "address",
        [
            f"mysql://me:{CANARY}@db/shop",
            f"me:{CANARY}@db/shop",
            CANARY,
            f"{CANARY}://x",
            f"postgres//me:{CANARY}@db",
            f"postgresql://me:{CANARY}@db/" + "x" * 5000,
        ],
        ids=range(6),
    )
    @pytest.mark.parametrize(
        "variable", ["DATABASE_URL", "LIVEWELL_DATABASE_URL", "LIVEWELL_LISTEN_URL", "livewell.toml"]
    )
    def test_a_password_is_in_no_part_of_an_error(
        self, monkeypatch: pytest.MonkeyPatch, variable: str, address: str
    ) -> None:
        """Message, traceback with locals, causes and contexts.

        Proven by raising inside the except block: this fails.
        """
        if variable == "livewell.toml":
            write(f"database_url = {json.dumps(address)}\n")
        else:
            monkeypatch.setenv(variable, address)

        with pytest.raises(ConfigurationError) as caught:
            Settings.load()

        error = caught.value
        ours = list(traceback.TracebackException.from_exception(error, capture_locals=True).stack)[1:]
        told = [str(error), repr(error), *traceback.format_exception(error), *(str(entry.locals) for entry in ours)]
        assert [text for text in told if CANARY in text] == []
        assert (error.__cause__, error.__context__) == (None, None)

    @pytest.mark.parametrize("name", ["app", "roles", "lease_seconds", "worker_slots"])
    def test_an_address_in_the_wrong_variable_is_masked_too(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        """People paste."""
        monkeypatch.setenv(f"LIVEWELL_{name.upper()}", self.GOOD)

        message = refusal()

        assert "me:***@db" in message
        assert CANARY not in message

    def test_the_class_itself_does_not_print_what_it_refuses(self) -> None:
        """Pydantic shows the input by default."""
        with pytest.raises(ValidationError) as caught:
            Settings(database_url=SecretStr(f"mysql://me:{CANARY}@db"), lease_seconds=f"password={CANARY}")  # type: ignore[arg-type]

        assert CANARY not in "".join(traceback.format_exception(caught.value))


def _bounds(name: str) -> tuple[float, float]:
    schema = Settings.model_json_schema()["properties"][name]
    return schema["minimum"], schema["maximum"]


NUMBERS = [name for name, info in Settings.model_fields.items() if info.annotation in (int, float)]
UNITS = ("_seconds", "_ms", "_days", "_days_ahead", "_max", "_slots", "_per_second", "_port")


class TestTheFields:
    @pytest.mark.parametrize("name", NUMBERS)
    def test_a_number_has_a_unit_a_range_and_a_default_within(self, name: str) -> None:
        """Rule 9: every bound is stated in settings with a unit in its name."""
        low, high = _bounds(name)

        assert name.endswith(UNITS)
        assert low <= Settings.model_fields[name].default <= high

    @pytest.mark.parametrize("name", list(Settings.model_fields))
    def test_a_field_says_what_it_is_for(self, name: str) -> None:
        """In a sentence, for the reference page."""
        description = Settings.model_fields[name].description or ""

        assert description.endswith(".")
        assert "|" not in description

    @pytest.mark.parametrize("name", NUMBERS)
    def test_a_number_outside_its_range_is_refused(self, name: str) -> None:
        """One step beyond either end, in the environment's spelling."""
        low, high = _bounds(name)

        for value in (low - 1, high + 1):
            assert refusal(**{name: str(value)}).endswith(f"from {low:.10g} to {high:.10g}")

    @hypothesis_settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        st.sampled_from(list(Settings.model_fields)), st.one_of(st.text(), st.integers(), st.floats(), st.booleans())
    )
    def test_any_value_is_taken_or_refused_with_our_own_error(self, name: str, value: object) -> None:
        """Nothing a user can write raises anything but ConfigurationError, and that one blames the right setting."""
        flags: dict[str, Any] = {name: value}
        try:
            taken, told = getattr(Settings.load(**flags), name), ""
        except ConfigurationError as error:
            taken, told = None, str(error)

        assert (taken is not None) != (f"(keyword {name}) is " in told)


def test_the_reference_page_is_the_one_the_fields_make() -> None:
    """If this fails: python -m livewell.settings > docs/reference/settings.md."""
    assert PAGE.read_text(encoding="utf-8") == reference_page()


def test_the_reference_page_has_every_field_once() -> None:
    """With its default, so that the generator cannot lose one."""
    rows = [line.split(" | ")[0].strip("| `") for line in reference_page().splitlines() if line.startswith("| `")]

    assert sorted(rows) == sorted(Settings.model_fields)


class TestHosts:
    """The lists of hosts that may be called."""

    def test_a_comma_list_and_a_toml_list_are_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Lower case, without doubles, in the order given."""
        monkeypatch.setenv("LIVEWELL_OUTBOUND_HOSTS", "API.Example.com, data.test,api.example.com")
        write('outbound_private_hosts = ["localhost", "127.0.0.1", "::1"]\n')
        loaded = Settings.load()

        assert loaded.outbound_hosts == ("api.example.com", "data.test")
        assert loaded.outbound_private_hosts == ("localhost", "127.0.0.1", "[::1]")
        assert loaded.masked()["outbound_hosts"] == "api.example.com, data.test"

    def test_without_a_word_only_the_upstream_we_ship_may_be_called_and_nothing_private(self) -> None:
        """A demo or a test that calls this machine names it."""
        loaded = Settings.load()

        assert (loaded.outbound_hosts, loaded.outbound_private_hosts) == (("financialmodelingprep.com",), ())

    @pytest.mark.parametrize(
        "value", ["", "*", "*.example.com", "https://a.com", "a.com:443", "a.com,,b.com", "127.1", "a b", 7, [1], "a\0"]
    )
    def test_what_is_no_exact_host_name_is_refused(self, value: object) -> None:
        """The message names the setting and what is allowed."""
        message = refusal(outbound_hosts=value)

        assert "--outbound-hosts" in message
        assert "exact host names" in message or value == ""
