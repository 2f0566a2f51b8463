"""Compare what this release carries with what a database has."""

from dataclasses import dataclass, replace
from typing import Literal

from livewell.capability import built_in
from livewell.db.migrate.bundle import Bundle, Package, SqlFile, release_number
from livewell.db.migrate.state import OWNER, ROLES, Books, State
from livewell.errors import MigrationError

Roles = Literal["create", "none"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run.

    `drift` holds what was changed by hand: object → what the migrator had left there (None:
    nothing).
    """

    version: str
    packages: tuple[Package, ...]
    roles: bool
    schema: bool
    version_before: str | None
    drift: dict[str, str | None]

    @property
    def empty(self) -> bool:
        """Whether the database already is what this release wants."""
        return not self.packages and self.version == self.version_before

    def files(self) -> tuple[SqlFile, ...]:
        """Give every file to run, in order."""
        return tuple(file for package in self.packages for file in package.files())


def make_plan(bundle: Bundle, state: State, roles: Roles) -> Plan:
    """Say what `migrate` has to do, or raise MigrationError when it must not."""
    books = state.books
    _refuse_other_owner(books, roles)
    _refuse_newer(bundle, books)
    if edited := edited_files(bundle, books):
        raise MigrationError(edited_message(edited[0]))
    with_roles = roles == "create"
    return Plan(
        version=bundle.version,
        packages=pending(bundle, books, with_roles=with_roles, functions=state.functions),
        roles=with_roles,
        schema=books.owner is None,
        version_before=books.version,
        drift=table_drift(state),
    )


def pending(
    bundle: Bundle, books: Books, *, with_roles: bool, functions: dict[str, str] | None = None
) -> tuple[Package, ...]:
    """Reduce each package to the files that must run; packages with none are left out.

    A new numbered file re-applies all functions of its package, as it may have dropped one;
    anything at all re-applies its grants, as a function made anew has lost them. `functions` are
    the live hashes; without them a function changed by hand is not noticed.
    """
    found = []
    role_missing = with_roles and books.owner is not None and not books.roles.issuperset(ROLES)
    for package in bundle.packages:
        numbered = tuple(file for file in package.numbered if (file.package, file.number) not in books.numbered)
        changed = tuple(file for file in package.functions if numbered or not _installed(file, books, functions))
        grants = package.grants if with_roles else None
        if grants and not (numbered or changed or role_missing) and books.grants.get(package.name) == grants.checksum:
            grants = None
        if numbered or changed or grants:
            found.append(replace(package, numbered=numbered, functions=changed, grants=grants))
    return tuple(found)


def table_drift(state: State) -> dict[str, str | None]:
    """Give each object that differs from what the migrator left, with what it had left there."""
    if state.books.version is None:
        return {}
    was, now = state.books.catalog, state.catalog
    return {key: was.get(key) for key in sorted(was.keys() | now.keys()) if was.get(key) != now.get(key)}


def edited_files(bundle: Bundle, books: Books) -> list[SqlFile]:
    """Give the numbered files that ran here with another content."""
    return [
        file
        for file in bundle.numbered()
        if books.numbered.get((file.package, file.number), ("", file.checksum))[1] != file.checksum
    ]


def edited_message(file: SqlFile) -> str:
    """Say what to do about an edited file."""
    return (
        f"{file.label} was edited after it ran here. A numbered file is never changed: put it back as it was "
        "and write the next number, "
        "or, if nothing in this database matters, drop schema livewell and migrate again."
    )


def unknown_files(bundle: Bundle, books: Books) -> list[str]:
    """Name the numbered files that ran here and that this release does not carry."""
    ours = {(file.package, file.number) for file in bundle.numbered()}
    elsewhere = uninstalled(bundle, books)
    return [
        f"{package}/{number:03d}_{name}.sql"
        for (package, number), (name, _) in sorted(books.numbered.items())
        if (package, number) not in ours and package not in elsewhere
    ]


def uninstalled(bundle: Bundle, books: Books) -> list[str]:
    """Name the capabilities whose files ran here, and whose package is not installed on this machine."""
    known = {package.name for package in bundle.packages} | {one.name for one in built_in()}
    return sorted({package for package, _ in books.numbered} - known)


def uninstalled_message(name: str) -> str:
    """Say that a capability is not installed here."""
    return f"Capability {name} has tables here, and no package on this machine offers it."


def uninstalled_mend(name: str) -> str:
    """Say what to do about it."""
    return (
        "Install the package that offers it; or, if it shall go for good, drop its tables and functions, and its rows "
        f"(package = '{name}') in livewell.migration, livewell.function_source and livewell.grant_source."
    )


def _installed(file: SqlFile, books: Books, functions: dict[str, str] | None) -> bool:
    checksum, installed = books.functions.get((file.package, file.name), ("", ""))
    return checksum == file.checksum and (functions is None or functions.get(file.name) == installed)


def _refuse_other_owner(books: Books, roles: Roles) -> None:
    wanted = OWNER if roles == "create" else books.me
    if books.owner in {None, wanted}:
        return
    mend = {
        True: "Migrate without --roles none.",
        False: f"It was installed without roles: migrate as {books.owner} with --roles none.",
    }[books.with_roles]
    raise MigrationError(f'livewell migrate: schema livewell belongs to "{books.owner}", not to "{wanted}". {mend}')


def _refuse_newer(bundle: Bundle, books: Books) -> None:
    if books.version is not None and release_number(books.version) > release_number(bundle.version):
        raise MigrationError(
            f"livewell migrate: the schema is of release {books.version}, this package is {bundle.version}: an "
            "older package never changes a newer schema. "
            f"Install livewell {books.version} or newer."
        )
    if gone := uninstalled(bundle, books):
        raise MigrationError(f"livewell migrate: {uninstalled_message(gone[0])} {uninstalled_mend(gone[0])}")
    if unknown := unknown_files(bundle, books):
        raise MigrationError(
            f"livewell migrate: {unknown[0]} ran here, but this package ({bundle.version}) does not carry it: "
            "it is from another build. Install that one."
        )
