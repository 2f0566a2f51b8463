"""What the path of an artifact looks like.

    <32 hex digits of SHA-256 of the user>/<id of the export>/<fence of the job>.<suffix>

The user's part keeps names of people out of folders and buckets. The fence makes each attempt's
file another one, so that an attempt which was given up cannot touch the file of the next. A path
that looks different is refused before it reaches a disk or a network: there is no traversal to
guard against.
"""

from __future__ import annotations

import hashlib
import re
from uuid import UUID

from livewell.exports.artifacts.store import ArtifactError

USER_PREFIX = re.compile(r"[0-9a-f]{32}")
EXPORT_FOLDER = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
FILE_NAME = re.compile(r"(0|[1-9][0-9]{0,18})\.[a-z0-9]{1,16}")


def user_prefix(user: str) -> str:
    """The folder that holds everything of one user."""
    return hashlib.sha256(user.encode()).hexdigest()[:32]


def artifact_path(user: str, export: UUID, fence: int, suffix: str) -> str:
    """Where the file of one attempt at an export lies."""
    path = f"{user_prefix(user)}/{export}/{fence}.{suffix}"
    split_path(path)
    return path


def split_path(path: str) -> tuple[str, str, str]:
    """The three parts of a path. Raises ArtifactError if it has any other shape."""
    match path.split("/"):
        case [user, export, name] if (
            USER_PREFIX.fullmatch(user) and EXPORT_FOLDER.fullmatch(export) and FILE_NAME.fullmatch(name)
        ):
            return user, export, name
    raise ArtifactError("refused", "path")


def is_path(text: str) -> bool:
    """True for the path of an artifact; other things may lie in a store, too."""
    try:
        split_path(text)
    except ArtifactError:
        return False
    return True


def check_prefix(prefix: str) -> str:
    """A user's folder, or "" for all of them. Raises ArtifactError for anything else."""
    if prefix and not USER_PREFIX.fullmatch(prefix):
        raise ArtifactError("refused", "path")
    return prefix
