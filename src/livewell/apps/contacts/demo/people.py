"""Who there is, and what each call knows of them: some of the identities of one person, two or three."""

from __future__ import annotations

import random

Pair = tuple[str, str]
_KNOWN = {  # what each way of meeting somebody knows of them
    "sign-up": ("email", "phone"),
    "log-in": ("external_id", "email"),
    "import": ("email", "work_email", "phone", "external_id:crm"),
}


def person(number: int) -> dict[str, Pair]:
    """All identities of one person."""
    return {
        "email": ("email", f"Person{number}@Example.com"),
        "work_email": ("email", f"p{number}@work.example"),
        "phone": ("phone", f"+49 30 {number:07}"),
        "external_id": ("external_id", f"acct_{number}"),
        "external_id:crm": ("external_id:crm", f"crm-{number}"),
    }


def call(dice: random.Random, newest: int) -> list[Pair]:
    """One call about somebody of the newest: many calls meet the same person at the same time."""
    known = person(max(0, newest - int(dice.expovariate(1 / 20))))
    names = list(_KNOWN[dice.choice(list(_KNOWN))])
    chosen = dice.sample(names, min(len(names), dice.choice((1, 2, 2, 3))))
    return [known[name] for name in chosen]
