"""F-F1: malicious and broken registry entries.

Files and documents are refused with a typed error before the database hears of them; rows that only
the owner could write by hand are refused by the database, or become nothing but a quoted name.

The oracle is the catalog: after every attempt the tables, functions and roles are those that were
there, besides tables in livewell_data.

Can it fail? Yes: with a bound put into the CHECK by %s instead of %L (column_bounds.sql), "minimum
that calls" gets through and sleeps.
"""

from __future__ import annotations

import time

import psycopg

from livewell.errors import ConfigurationError
from livewell.refresh.definition.document import read, read_file
from livewell.refresh.definition.model import TypeDefinition
from livewell.refresh.registry.sample_check import check_sample
from tests.faults import hostile_definitions as hostile
from tests.faults.fleet import open_fleet
from tests.faults.scenario import Findings, Scale
from tests.support.refresh_types import QUOTE, type_of
from tests.support.registry_sql import RegistrySession

CODE = "F-F1"
TITLE = "Malicious and broken registry entries"

_SECONDS_MAX = 5.0
# What nothing in a registry may change. Other tests make roles on the same server meanwhile.
_WORLD = """
SELECT (SELECT count(*) FROM pg_class WHERE relnamespace <> 'livewell_data'::regnamespace AND relnamespace <> 'pg_toast'::regnamespace AND relpersistence <> 't'),
       (SELECT md5(string_agg(proname || coalesce(prosrc, ''), '' ORDER BY oid)) FROM pg_proc WHERE pronamespace = 'livewell'::regnamespace),
       (SELECT count(*) FROM pg_roles WHERE rolname LIKE 'livewell%' AND rolname NOT LIKE 'livewell_test%')
"""


async def run(scale: Scale) -> Findings:
    """Try everything, and look at the world after each."""
    findings = Findings()
    refused = _files(findings) + _documents(findings)
    async with open_fleet(scale) as fleet:
        with RegistrySession(fleet.dsn) as session:
            stopped, harmless = _rows(session, findings)
    tried = len(hostile.FILES) + len(hostile.documents()) + len(hostile.ROWS)
    findings.fired = refused + stopped
    findings.figures = {"tried": tried, "refused": refused, "refused_by_the_database": stopped, "harmless": harmless}
    findings.check(tried >= 100, f"only {tried} were tried")
    return findings


def _files(findings: Findings) -> int:
    refused = 0
    for name, content in hostile.FILES.items():
        begun = time.monotonic()
        try:
            read_file(content, "hostile.toml")
        except ConfigurationError as error:
            refused += 1
            findings.check(len(str(error)) < 2000, f"file {name}: an error of {len(str(error))} characters")
        else:
            findings.check(False, f"file {name}: it was accepted")
        findings.check(time.monotonic() - begun < _SECONDS_MAX, f"file {name}: it took too long")
    return refused


def _documents(findings: Findings) -> int:
    refused = 0
    for name, document in hostile.documents().items():
        begun = time.monotonic()
        try:
            found = read(document, "hostile.toml")
            if isinstance(found, TypeDefinition):
                check_sample(found, "hostile.toml")
        except ConfigurationError:
            refused += 1
        else:
            findings.check(False, f"document {name}: it was accepted")
        findings.check(time.monotonic() - begun < _SECONDS_MAX, f"document {name}: it took too long")
    return refused


def _rows(session: RegistrySession, findings: Findings) -> tuple[int, int]:
    stopped = harmless = 0
    session.clear()
    session.apply_upstream()
    before = session.rows(_WORLD)
    for name, columns in hostile.ROWS.items():
        begun = time.monotonic()
        try:
            answer = session.apply(type_of(QUOTE), **columns)
        except psycopg.Error as error:
            stopped += 1
            known = (error.sqlstate or "")[:2] in ("22", "23", "42", "54", "LW")
            findings.check(known, f"row {name}: {error.sqlstate} {error}")
        else:
            harmless += 1
            findings.check(answer.outcome == "created", f"row {name}: {answer}")
        findings.check(session.rows(_WORLD) == before, f"row {name}: the world has changed")
        findings.check(time.monotonic() - begun < _SECONDS_MAX, f"row {name}: it took too long")
        session.clear()
        session.apply_upstream()
    return stopped, harmless
