"""What our sessions need, whatever the server, the database or the login has for a default.

A direct connection asks for it when it is opened. A transaction pooler refuses that, and a SET
would reach the next client of the same server connection. There the login must have it (ALTER ROLE
… SET), and the doctor says so.

    jit                             our statements are short and many; compiling them took 0.9 to 2.5 s where running them takes 40 ms (Debian's server has it on)
    default_transaction_isolation   lock first, then read in a new statement: under a snapshot for the whole transaction the second statement would be blind
    lock_timeout                    a claim that waits for a row is not an error
    DateStyle, IntervalStyle        the driver reads no other
    standard_conforming_strings     a backslash in a text is a backslash
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NEEDED: Final[Mapping[str, str]] = {
    "jit": "off",
    "default_transaction_isolation": "read committed",
    "lock_timeout": "0",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "standard_conforming_strings": "on",
}


def startup_options(more: Mapping[str, object]) -> str:
    """As libpq takes them, with these besides."""
    return " ".join(f"-c {name}={_escaped(str(value))}" for name, value in {**NEEDED, **more}.items())


def differing(found: Mapping[str, str]) -> dict[str, str]:
    """Those of a session's settings that are not as we need them.

    DateStyle may say more than its style.
    """
    return {name: value for name, value in found.items() if name in NEEDED and value.partition(",")[0] != NEEDED[name]}


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")
