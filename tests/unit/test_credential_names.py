"""L7: a file may not name our own secrets, nor what belongs to the machine, as credentials of an upstream."""

from __future__ import annotations

import pytest

from livewell import Settings
from livewell.errors import InvalidDefinition
from livewell.refresh.definition.credentials import Credentials, own_variables
from livewell.refresh.definition.document import read_file
from livewell.refresh.definition.model import UpstreamDefinition
from livewell.settings import AlertChannel, Issuer

FILE = """
[upstream]
name = "fmp"
base_url = "https://example.com"
credential_in = "header:apikey"
credentials = ["FMP_API_KEY", "{name}"]
"""

OURS = [
    *("LIVEWELL_DATABASE_URL", "LIVEWELL_API_URL", "LIVEWELL_ANYTHING", "LIVEWELL_TEST_KEY"),
    *("DATABASE_URL", "PGPASSWORD", "PGPASSFILE", "PGSERVICE"),
    *("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "HOME", "USER", "SHELL", "PWD", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR"),
    *("HTTPS_PROXY", "PYTHONSTARTUP", "LD_PRELOAD", "CREDENTIALS_DIRECTORY", "LC_ALL"),
]
NAMED = ["HS_SECRET", "HOOK_URL", "HOOK_SECRET"]


def settings() -> Settings:
    """With a token issuer and an alert channel, which name three variables."""
    issuer = Issuer(name="us", issuer="i", audience="a", algorithm="HS256", key="env:HS_SECRET")
    channel = AlertChannel(name="hook", kind="webhook", address="env:HOOK_URL", secret="env:HOOK_SECRET")  # noqa: S106 - a name
    return Settings().model_copy(update={"jwt": (issuer,), "alert_channels": (channel,)})


@pytest.mark.parametrize("name", [*OURS, *NAMED])
def test_a_file_that_names_a_variable_of_ours_is_refused(name: str) -> None:
    """The message says which, which are allowed, and what to do."""
    with pytest.raises(InvalidDefinition) as refused:
        read_file(FILE.format(name=name).encode(), "fmp.toml", own_variables=own_variables(settings()))

    words = str(refused.value)
    assert words.startswith(f"fmp.toml: [upstream]: credentials: the variable {name} is Livewell's own or the system's")
    assert all(part in words for part in ("LIVEWELL_*", "DATABASE_URL", "PG*", "PATH", "jwt", "alert_channels"))
    assert "such as FMP_API_KEY" in words


@pytest.mark.parametrize(
    "name", ["FMP_API_KEY_2", "POLYGON_KEY", "SIMULATOR_KEY", "P", "USER_KEY", "HOME_API_KEY", "P_G", "LIVE_KEY"]
)
def test_any_other_name_is_taken(name: str) -> None:
    """A name that only begins or ends like one of ours is somebody's key."""
    read = read_file(FILE.format(name=name).encode(), "fmp.toml", own_variables=own_variables(settings()))

    assert isinstance(read, UpstreamDefinition)
    assert read.credentials == ("FMP_API_KEY", name)


@pytest.mark.parametrize("name", [*OURS, *NAMED])
def test_a_worker_does_not_read_a_variable_of_ours(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a row says that an older release has applied."""
    credentials = Credentials(settings())
    monkeypatch.setenv(name, "a secret of ours")
    monkeypatch.setenv("FMP_API_KEY", "theirs")

    assert credentials.read(name) is None
    assert not credentials.can_use("refresh.fmp", name)
    read = credentials.read("FMP_API_KEY")
    assert read is not None
    assert read.get_secret_value() == "theirs"
