"""A résumé that shows every section: what a child warms up with, and what tests and pages show."""

from __future__ import annotations

from typing import Any, Final

# One red pixel: the smallest photo.
_PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)

DOCUMENT: Final[dict[str, Any]] = {
    "basics": {
        "name": "Ada Lovelace",
        "label": "Analyst and Metaphysician",
        "image": _PIXEL,
        "imageAlt": "Portrait of Ada Lovelace",
        "email": "ada@analytical.example",
        "phone": "+44 20 7946 0018",
        "url": "https://analytical.example/ada",
        "summary": "Writes programs for machines that are not built yet, and says plainly what they cannot do.",
        "location": {"city": "London", "countryCode": "GB"},
        "profiles": [{"network": "GitLab", "username": "ada", "url": "https://gitlab.example/ada"}],
    },
    "work": [
        {
            "position": "Programmer",
            "name": "Analytical Engine",
            "location": "London",
            "url": "https://engine.example",
            "startDate": "1842-02",
            "endDate": "1843-09",
            "summary": "Translated Menabrea’s paper and trebled it with notes.",
            "highlights": [
                "Published the first algorithm that a machine could carry out: the Bernoulli numbers.",
                "Described loops, conditions and subroutines.",
            ],
        }
    ],
    "projects": [
        {
            "name": "Note G",
            "roles": ["Author"],
            "startDate": "1843",
            "endDate": "1843",
            "description": "A table of 25 operations.",
            "keywords": ["Algorithms", "Proof"],
        }
    ],
    "education": [
        {
            "studyType": "Private study",
            "area": "Mathematics",
            "institution": "Augustus De Morgan",
            "startDate": "1840",
            "endDate": "1842",
            "courses": ["Calculus"],
        }
    ],
    "skills": [{"name": "Mathematics", "level": "Master", "keywords": ["Analysis", "Numbers"]}],
    "certificates": [{"name": "Fellow", "issuer": "Society", "date": "1841-05-01"}],
    "awards": [{"title": "Medal", "awarder": "Academy", "date": "1843", "summary": "For the notes."}],
    "publications": [{"name": "Sketch of the Analytical Engine", "publisher": "Taylor", "releaseDate": "1843-08"}],
    "volunteer": [{"organization": "Library", "position": "Reader", "startDate": "1839", "endDate": "1840"}],
    "languages": [{"language": "French", "fluency": "Fluent"}],
    "interests": [{"name": "Music", "keywords": ["Harp"]}],
    "references": [{"name": "Charles Babbage", "reference": "The Enchantress of Number."}],
}
