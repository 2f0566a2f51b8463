"""What an error of a store may say, and how a check says that a store is wrong."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Iterator, Sequence

from livewell.errors import LivewellError
from livewell.exports.artifacts.store import ArtifactError


class Broken(LivewellError, AssertionError):
    """The store broke a rule; the text says which."""


def demand(holds: object, rule: str) -> None:
    """Raise Broken unless it holds."""
    if not holds:
        raise Broken(rule)


async def failure(call: Awaitable[object], what: str) -> ArtifactError:
    """The ArtifactError that a call raises; anything else is Broken."""
    try:
        await call
    except ArtifactError as error:
        return error
    except Exception as error:
        raise Broken(f"{what}: {type(error).__name__} instead of an ArtifactError") from error
    raise Broken(f"{what}: no error at all")


def is_silent_about(error: BaseException, secrets: Sequence[str]) -> None:
    """Raise Broken if any text of the error, or of one behind it, has a secret in it.

    The text of every error in the chain counts, also of those that `from None` only hides: a
    logger of somebody else may show them.
    """
    for one in _chain(error):
        texts = [str(one), repr(one), *map(str, one.args), *getattr(one, "__notes__", [])]
        texts += [str(value) for value in vars(one).values()]
        texts += list(traceback.TracebackException.from_exception(one).format_exception_only())
        for text in texts:
            for secret in secrets:
                demand(secret not in text, f"a secret of the place is in {type(one).__name__} of the chain")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    left = [error]
    while left:
        one = left.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            left += [one.__cause__, one.__context__]
