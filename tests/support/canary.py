"""The canary over the whole suite (F-F5).

What a test makes or gives as a secret is afterwards nowhere in what it printed and logged, nor in
any row of its database, nor in the log of Postgres.

    canary.watch(secret)      by whoever makes one: API keys, logins and links by themselves (tests/conftest.py), the upstream's credential in tests/support/market.py

A secret is looked for as it is and as addresses and JSON would have it. Messages name the place and
never the secret.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from urllib.parse import quote

import psycopg
from psycopg import sql

TABLES = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'm') AND n.nspname IN ('livewell', 'livewell_data', 'public') AND NOT c.relispartition ORDER BY 1, 2
"""
_CHARS_MIN = 12

secrets: set[str] = set()  # of this test
ever: set[str] = set()  # of this process


def watch(secret: str) -> str:
    """From now on it must not be seen anywhere."""
    if len(secret) < _CHARS_MIN:
        raise ValueError("a secret that is this short is found everywhere")
    secrets.add(secret)
    ever.add(secret)
    return secret


def forms(secret: str) -> set[str]:
    """How a secret may look where it does not belong."""
    return {
        secret,
        quote(secret, safe=""),
        json.dumps(secret)[1:-1],
        base64.b64encode(secret.encode()).decode().rstrip("="),
    }


def leaks(places: Mapping[str, str], among: Iterable[str]) -> list[str]:
    """The names of the places that hold one."""
    looked_for = [form for secret in among for form in forms(secret)]
    return [name for name, text in places.items() if any(form in text for form in looked_for)]


def rows(dsn: str) -> dict[str, str]:
    """Every row of every table, as text."""
    with psycopg.connect(dsn, autocommit=True) as admin:
        tables = admin.execute(TABLES).fetchall()
        each = sql.SQL("SELECT {name}, string_agg(t::text, chr(10)) FROM {table} t")
        parts = [
            each.format(name=sql.Literal(f"table {schema}.{name}"), table=sql.Identifier(schema, name))
            for schema, name in tables
        ]
        return {name: text or "" for name, text in admin.execute(sql.SQL(" UNION ALL ").join(parts)).fetchall()}
