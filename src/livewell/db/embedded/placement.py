"""Where the data folder may be, and who may enter it.

    missing ──made──▶ empty ──lock file──▶ ours
    not empty and without a lock file, or another user's ──▶ refused, untouched

As an ordinary user the folder is ours and 0700. As root it belongs to root, its group is the
account's and its mode 0710. The account can pass through to the folders that it owns, but cannot
plant links where root writes; other users cannot enter. No mode outside the folder is changed: if
the account cannot get to it, the error says which folder is shut.
"""

import hashlib
import os
import tempfile
from pathlib import Path

from livewell.db.embedded.account import Account, server_account
from livewell.db.embedded.folder import Folder
from livewell.errors import ConfigurationError, EmbeddedPostgresError


def open_folder(data_dir: Path) -> Folder | None:
    """The folder when it is ours, None when there is nothing yet; an error when we may not look."""
    folder = Folder(data_dir.resolve())
    try:
        return folder if folder.lock.stat() else None
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise ConfigurationError(
            f"embedded Postgres: {folder.root} is not a folder, or lies below a file. Set LIVEWELL_DATA_DIR to "
            "a folder; it is made if it is not there."
        ) from None
    except PermissionError as error:
        raise EmbeddedPostgresError(
            f"embedded Postgres: {folder.root} belongs to another user. Run this as that user, or set "
            "LIVEWELL_DATA_DIR to a folder of your own."
        ) from error


def make_folder(data_dir: Path) -> tuple[Folder, Account]:
    """The folder, made and with its modes set, and the account that can reach it."""
    opened = open_folder(data_dir)
    folder = opened or Folder(data_dir.resolve())
    account = server_account(folder.cluster)
    _check_reachable(folder.root, account)
    if opened is None:
        _create(folder.root, account)
    _check_ours(folder)
    mode = 0o710 if account.dropped else 0o700
    if account.dropped:
        os.chown(folder.root, -1, account.gid)
    folder.root.chmod(mode)
    return folder, account


def default_data_dir() -> Path:
    """`./.livewell`, or, where the server's account cannot get there, a folder kept elsewhere for this one.

    Elsewhere is /var/lib/livewell for root and $XDG_STATE_HOME/livewell (~/.local/state/livewell)
    for others, or one of our own in the temporary folder when that cannot be written; the name in
    it is a hash of the current folder's path.
    """
    here = Path.cwd()
    beside = here / ".livewell"
    account = server_account(beside / "pgdata")
    key = hashlib.sha256(str(here).encode()).hexdigest()[:16]
    places = [beside, _state_home() / "livewell" / key]
    for place in places:
        if _usable(place, account):
            return place
    return Path(tempfile.gettempdir()) / f"livewell-{os.geteuid()}-{key}"


def _state_home() -> Path:
    if os.geteuid() == 0:
        return Path("/var/lib")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")


def _usable(place: Path, account: Account) -> bool:
    above = _nearest_existing(place)
    return os.access(above, os.W_OK | os.X_OK) and account.can_enter(above if above != place else place.parent)


def _nearest_existing(path: Path) -> Path:
    return next(candidate for candidate in (path, *path.parents) if candidate.exists())


def _check_reachable(root: Path, account: Account) -> None:
    above = _nearest_existing(root.parent)
    if account.can_enter(above):
        return
    shut = next(path for path in (*reversed(above.parents), above) if not account.can_enter(path))
    raise EmbeddedPostgresError(
        f"embedded Postgres: the account {account.name}, which runs the server, cannot pass through {shut} "
        f"to {root}. Set LIVEWELL_DATA_DIR to a folder it can reach, such as /var/lib/livewell."
    )


def _create(root: Path, account: Account) -> None:
    missing = [path for path in root.parents if not path.exists()]
    try:
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            if account.dropped:
                path.chmod(0o711)  # under umask 077 the account could not pass through what we have just made
        root.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise EmbeddedPostgresError(
            f"embedded Postgres: cannot make the data folder {root}: {error.strerror}. "
            "Set LIVEWELL_DATA_DIR to a folder you may write to."
        ) from error


def _check_ours(folder: Folder) -> None:
    owner = folder.root.stat().st_uid
    if owner != os.geteuid():
        raise EmbeddedPostgresError(
            f"embedded Postgres: {folder.root} belongs to user {owner}, we are {os.geteuid()}. Run this as that user, "
            "or set LIVEWELL_DATA_DIR to a folder of your own."
        )
    if any(folder.root.iterdir()) and not folder.lock.exists():
        raise EmbeddedPostgresError(
            f"embedded Postgres: {folder.root} holds other files, and the data folder must be ours alone. "
            f"Set LIVEWELL_DATA_DIR to a new folder, such as {folder.root}/postgres."
        )
