"""Say whether a schema fits this release.

For a person (`check`), and for a worker about to start (`require_current`).
"""

from dataclasses import dataclass
from typing import Literal

from livewell.db.migrate.apply import connect
from livewell.db.migrate.bundle import Bundle, release_number
from livewell.db.migrate.plan import (
    edited_files,
    edited_message,
    pending,
    table_drift,
    uninstalled,
    uninstalled_mend,
    uninstalled_message,
    unknown_files,
)
from livewell.db.migrate.state import ROLES, Books, State, read_books, read_state
from livewell.errors import MigrationError

_BY_HAND = "Undo it by hand; to see every definition run: livewell migrate --print"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not as this release wants it, and the command that mends it."""

    kind: Literal["missing", "older", "newer", "drift"]
    message: str
    command: str


def check(dsn: str, *, bundle: Bundle | None = None) -> list[Problem]:
    """Compare a database with this release.

    An empty list means it is exactly what `migrate` would leave.
    """
    bundle = bundle or Bundle.load()
    with connect(dsn) as connection:
        state = read_state(connection)
    found = _misfits(bundle, state.books)
    if state.books.version is None:
        return found
    return [*found, *_missing_roles(state.books), *_function_drift(bundle, state), *_table_drift(state)]


def require_current(dsn: str, *, bundle: Bundle | None = None) -> None:
    """Refuse to start on a schema that is missing, older, or more than one minor version newer (GU12).

    A change by hand is not refused: an index that someone added at night must not keep the workers
    from starting in the morning. `check` reports it.
    """
    bundle = bundle or Bundle.load()
    with connect(dsn) as connection:
        books = read_books(connection)
    for problem in _misfits(bundle, books):
        if problem.kind in {"missing", "older"} or (
            problem.kind == "newer" and not _works_with(bundle.version, books.version)
        ):
            raise MigrationError(f"livewell: {problem.message} {problem.command}")


def _misfits(bundle: Bundle, books: Books) -> list[Problem]:
    """Compare the books alone."""
    if books.version is None:
        return [Problem("missing", "This database has no Livewell schema.", "Run: livewell migrate")]
    if release_number(books.version) > release_number(bundle.version):
        return [_newer(bundle, books, "")]
    if unknown := unknown_files(bundle, books):
        return [_newer(bundle, books, f" and has {unknown[0]}, which this package does not carry")]
    edited = [
        Problem("drift", uninstalled_message(name), uninstalled_mend(name)) for name in uninstalled(bundle, books)
    ] + [
        Problem("drift", edited_message(file), f"Run: git log -p -- {file.label}")
        for file in edited_files(bundle, books)
    ]
    waiting = [
        file.label for package in pending(bundle, books, with_roles=books.with_roles) for file in package.files()
    ]
    if not waiting:
        return edited
    message = (
        f"The schema is of release {books.version}, this package is {bundle.version}; not applied: {_few(waiting)}."
    )
    return [*edited, Problem("older", message, "Run: livewell migrate")]


def _newer(bundle: Bundle, books: Books, what: str) -> Problem:
    message = f"The schema is of release {books.version}{what}; this package is {bundle.version}."
    return Problem("newer", message, f"Run: pip install 'livewell>={books.version}'")


def _works_with(package: str, schema: str | None) -> bool:
    ours, theirs = release_number(package), release_number(schema or package)
    return ours[0] == theirs[0] and theirs[1] - ours[1] <= 1


def _missing_roles(books: Books) -> list[Problem]:
    missing = [role for role in ROLES if role not in books.roles] if books.with_roles else []
    return [
        Problem("missing", f"Role {role} does not exist, or has no rights on schema livewell.", "Run: livewell migrate")
        for role in missing
    ]


def _function_drift(bundle: Bundle, state: State) -> list[Problem]:
    recorded = {name: installed for (_, name), (_, installed) in state.books.functions.items()}
    mendable = {file.name for package in bundle.packages for file in package.functions}
    found = []
    for name in sorted(recorded.keys() | state.functions.keys()):
        if name not in recorded:
            found.append(
                Problem(
                    "drift", f"Function livewell.{name} is not ours.", f"Run: psql -c 'DROP FUNCTION livewell.{name}'"
                )
            )
        elif state.functions.get(name) != recorded[name]:
            verb = "changed" if name in state.functions else "dropped"
            mend = "Run: livewell migrate" if name in mendable else _BY_HAND
            found.append(Problem("drift", f"Function livewell.{name} was {verb} by hand.", mend))
    return found


def _table_drift(state: State) -> list[Problem]:
    found = []
    for key, was in table_drift(state).items():
        now = state.catalog.get(key)
        kind, _, name = key.partition(" ")
        what = (
            f"{kind.capitalize()} livewell.{name} was changed by hand: it is {_quoted(now)}, and was left as "
            f"{_quoted(was)}."
        )
        found.append(Problem("drift", what, _BY_HAND))
    return found


def _quoted(definition: str | None) -> str:
    return "absent" if definition is None else f'"{definition}"'


def _few(labels: list[str]) -> str:
    more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
    return ", ".join(labels[:3]) + more
