"""What the benchmark exports: résumés of one page and of two, and options that no export has had before.

The same document with the same options twice is one export while it is unfinished, so every request
differs: in the margin, by a ten-thousandth of an inch.
"""

from __future__ import annotations

from itertools import count
from typing import Any

ONE_PAGE, TWO_PAGES = 2, 4  # positions in the document
_numbers = count()
_SUMMARY = (
    "Kept the prices of four thousand symbols fresh within the limits of their upstream, and told every viewer "
    "when a value had been checked and when it had last changed."
)


def resume(positions: int) -> dict[str, Any]:
    """A document in the JSON Resume schema."""
    return {
        "basics": {
            "name": "Zoë Kowalczyk",
            "label": "Engineer of databases",
            "email": "zoe@example.com",
            "summary": _SUMMARY,
            "location": {"city": "Kraków", "countryCode": "PL"},
        },
        "work": [
            {
                "name": f"Office {n} of Affairs",
                "position": "Engineer",
                "startDate": f"{2010 + n}-01",
                "endDate": f"{2011 + n}-06",
                "summary": _SUMMARY,
                "highlights": [_SUMMARY] * 3,
            }
            for n in range(positions)
        ],
        "education": [
            {"institution": "Jagiellonian University", "area": "Physics", "studyType": "MSc", "startDate": "2005-09"}
        ],
        "skills": [{"name": "Databases", "keywords": ["Postgres", "SQL", "queues"]}],
    }


def options() -> dict[str, Any]:
    """The usual ones, with a margin of their own."""
    return {"margin": f"{0.8 + next(_numbers) % 4_000 / 10_000:.4f}"}
