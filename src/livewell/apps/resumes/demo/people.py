"""What a résumé of the demo says: of any length from half a page to three, in three scripts."""

from __future__ import annotations

import random
from typing import Any

_NAMES = (
    "Ann Baker", "Zoë Müller", "Łukasz Żak", "Παναγιώτης Δήμου", "Анна Кузнецова", "José Ángel Ñúñez",
    "Søren Øvergård", "Şebnem Çağlar", "Ffion Llŷr", "Đorđe Šišić",
)  # fmt: skip
_PLACES = ("Aθήνα Labs", "Berlin Süd GmbH", "Office of Affairs", "Завод № 5", "Baffin & Sons", "Łódź Data")
_WORDS = (
    "kept", "the", "database", "fresh", "for", "thousands", "of", "viewers", "efficiently", "and", "reduced", "offline",
    "time", "by", "half", "naïve", "façade", "rewrote", "scheduler", "without", "a", "single", "lost", "job",
)  # fmt: skip


def resume(user: int, document: int, revision: int) -> dict[str, Any]:
    """A document in the JSON Resume schema; the same numbers give the same document."""
    dice = random.Random(f"{user}.{document}.{revision}")  # noqa: S311 - words of a demo
    return {
        "basics": {
            "name": _NAMES[user % len(_NAMES)],
            "label": f"Engineer, revision {revision}",
            "email": f"person{user}@example.com",
            "summary": _sentence(dice, 40),
            "location": {"city": "Αθήνα", "countryCode": "GR"},
        },
        "work": [
            {
                "name": dice.choice(_PLACES),
                "position": f"Engineer {n}",
                "startDate": f"{2010 + n}-01",
                "endDate": f"{2011 + n}-06",
                "summary": _sentence(dice, 25),
                "highlights": [_sentence(dice, 14) for _ in range(dice.randint(1, 4))],
            }
            for n in range(dice.choice((1, 2, 3, 6, 14)))
        ],
        "education": [
            {"institution": "University of Kraków", "area": "Physics", "studyType": "MSc", "startDate": "2005-09"}
        ],
        "skills": [{"name": "Databases", "level": "Master", "keywords": ["Postgres", "SQL"]}],
        "languages": [{"language": "Ελληνικά", "fluency": "native"}],
    }


def _sentence(dice: random.Random, words: int) -> str:
    return " ".join(dice.choice(_WORDS) for _ in range(words)).capitalize() + "."
