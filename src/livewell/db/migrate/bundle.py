"""The SQL files this release and the capabilities of other packages carry, read and checked.

<package>/sql/NNN_name.sql       tables, and the functions their triggers need; runs once, never edited after its release
<package>/sql/functions/…/NAME.sql  one function livewell.NAME, in a folder named after its step; applied again when it changes
<package>/sql/grants.sql         rights of our roles; applied last, left out when a database is installed without roles
"""

import hashlib
import importlib.metadata
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from livewell.capability import built_in, capabilities
from livewell.errors import MigrationError

_SOURCE = Path(__file__).parents[2]
_NUMBERED = re.compile(r"(\d{3})_([a-z0-9_]+)")
_FUNCTION = re.compile(r"[a-z][a-z0-9_]*")
_NOT_IN_A_TRANSACTION = (
    r"^\s*(BEGIN|START TRANSACTION|COMMIT|ROLLBACK|END)\s*;",
    "ends or begins a transaction; a release is one transaction",
)
_NO_ROLES = (r"^\s*GRANT\b|\bOWNER TO\b", "has GRANT or OWNER TO; rights go to grants.sql, the migrator sets the owner")
_CREATES = re.compile(r"\bCREATE\s+(?:OR\s+REPLACE\s+)?(?:FUNCTION|PROCEDURE)\s+livewell\.([a-z0-9_]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SqlFile:
    """One file. `number` is 0 for functions and grants; `creates` names the functions in it."""

    package: str
    name: str
    number: int
    label: str
    sql: str
    checksum: str
    creates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Package:
    """The files of one package, in the order in which they run."""

    name: str
    numbered: tuple[SqlFile, ...]
    functions: tuple[SqlFile, ...]
    grants: SqlFile | None

    def files(self) -> tuple[SqlFile, ...]:
        """Give them all, in that order."""
        return (*self.numbered, *self.functions, *((self.grants,) if self.grants else ()))


@dataclass(frozen=True, slots=True)
class Bundle:
    """Everything one release installs."""

    version: str
    packages: tuple[Package, ...]

    @classmethod
    def load(cls, root: Path | None = None, *, version: str | None = None) -> Self:
        """Read the SQL of every capability; with `root`, that of the built-in ones in another tree.

        A file that breaks the rules above is an error here, not halfway through a migration.
        """
        if root is None:
            folders = {one.name: one.migrations for one in capabilities() if one.migrations is not None}
        else:
            folders = {
                one.name: root / one.migrations.relative_to(_SOURCE)
                for one in built_in()
                if one.migrations is not None and one.migrations.is_relative_to(_SOURCE)
            }
        found = tuple(_package(folder, name) for name, folder in folders.items() if folder.is_dir())
        _refuse_twins(found)
        return cls(version or importlib.metadata.version("livewell"), found)

    def numbered(self) -> Iterator[SqlFile]:
        """All numbered files, in order."""
        return (file for package in self.packages for file in package.numbered)


def release_number(version: str) -> tuple[int, int, int]:
    """Give (major, minor, patch); what follows (rc1, .dev3) does not count."""
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    if not match:
        raise MigrationError(f'livewell migrate: "{version}" is not a release number like 1.4.2.')
    return int(match[1]), int(match[2]), int(match[3] or 0)


def _refuse_twins(packages: tuple[Package, ...]) -> None:
    """All functions are in one schema.

    A capability of another package must not replace somebody's.
    """
    owners: dict[str, str] = {}
    ours = {one.name for one in built_in()}
    for package in packages:
        for file in (*package.numbered, *package.functions):
            for name in file.creates:
                owner = owners.setdefault(name, package.name)
                if owner != package.name and package.name not in ours:
                    raise MigrationError(
                        f"livewell migrate: {file.label} creates livewell.{name}, which capability {owner} has. "
                        f"Give it a name of its own, such as {package.name}_{name}."
                    )


def _package(folder: Path, name: str) -> Package:
    numbered = [_numbered(folder, name, path) for path in sorted(folder.glob("*.sql")) if path.name != "grants.sql"]
    for place, file in enumerate(numbered, 1):
        if file.number != place:
            raise MigrationError(
                f"livewell migrate: {file.label} should have the number {place:03d}: they count from 001 without a gap."
            )
    functions = [_function(folder, name, path) for path in sorted((folder / "functions").rglob("*.sql"))]
    grants = (
        _file(folder, name, folder / "grants.sql", "grants", 0, _NOT_IN_A_TRANSACTION)
        if (folder / "grants.sql").exists()
        else None
    )
    return Package(name, tuple(numbered), tuple(functions), grants)


def _numbered(folder: Path, package: str, path: Path) -> SqlFile:
    match = _NUMBERED.fullmatch(path.stem)
    if not match:
        raise MigrationError(f"livewell migrate: {package}/sql/{path.name} should be named like 001_tables.sql.")
    return _file(folder, package, path, match[2], int(match[1]), _NOT_IN_A_TRANSACTION, _NO_ROLES)


def _function(folder: Path, package: str, path: Path) -> SqlFile:
    file = _file(folder, package, path, path.stem, 0, _NOT_IN_A_TRANSACTION, _NO_ROLES)
    if not _FUNCTION.fullmatch(path.stem) or not re.search(
        rf"\bCREATE OR REPLACE (FUNCTION|PROCEDURE) livewell\.{path.stem}\s*\(", file.sql
    ):
        raise MigrationError(
            f"livewell migrate: {file.label} should contain CREATE OR REPLACE FUNCTION livewell.{path.stem}(…)."
        )
    return file


def _file(folder: Path, package: str, path: Path, name: str, number: int, *rules: tuple[str, str]) -> SqlFile:
    sql = path.read_text(encoding="utf-8")
    label = f"{package}/{path.relative_to(folder).as_posix()}"
    code = re.sub(r"--[^\n]*", "", sql)
    for pattern, complaint in rules:
        if re.search(pattern, code, re.IGNORECASE | re.MULTILINE):
            raise MigrationError(f"livewell migrate: {label} {complaint}.")
    checksum = hashlib.sha256(sql.encode()).hexdigest()
    return SqlFile(package, name, number, label, sql, checksum, tuple(_CREATES.findall(code)))
