"""The registry's SQL functions as a test speaks them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from livewell.refresh.definition import document as documents
from livewell.refresh.definition.model import TypeDefinition, UpstreamDefinition
from livewell.refresh.registry.apply import type_row
from livewell.refresh.result import Value
from livewell.refresh.validate.answer import validate
from tests.support.queue_sql import QueueSession
from tests.support.refresh_types import NOW, upstream_of

# What the ledger's functions do in short, where a database has none of its own yet.
_STUBS = {
    "livewell.next_due(livewell.data_type, livewell.ledger, timestamptz)": """
        CREATE FUNCTION livewell.next_due(p_type livewell.data_type, p_ledger livewell.ledger, p_now timestamptz) RETURNS timestamptz LANGUAGE sql STABLE SET search_path = '' AS
        $$ SELECT greatest(p_now, p_ledger.retry_at, p_ledger.checked_at + coalesce(p_ledger.ttl_override, p_type.ttl)) $$""",
    "livewell.redue_type(text, text, integer)": """
        CREATE FUNCTION livewell.redue_type(p_type text, p_after text, p_limit integer) RETURNS text LANGUAGE sql SET search_path = '' AS $$ SELECT NULL::text $$""",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What apply_type() says."""

    outcome: str
    version: int | None
    reasons: list[str] | None
    statements: list[str]


class RegistrySession(QueueSession):
    """A session that applies definitions and writes values."""

    def clear(self) -> None:
        """No types, no tables, no keys."""
        for signature, stub in _STUBS.items():
            if self.value("SELECT to_regprocedure(%s) IS NULL", signature):
                self.rows(stub)
        for table in self.column(
            "SELECT relname::text FROM pg_class WHERE relnamespace = 'livewell_data'::regnamespace AND relkind = 'r'"
        ):
            self.rows(f'DROP TABLE livewell_data."{table.replace(chr(34), chr(34) * 2)}"')
        for table in ("universe", "ledger", "data_type", "upstream"):
            self.rows(f"DELETE FROM livewell.{table}")

    def apply_upstream(self, definition: UpstreamDefinition | None = None) -> tuple[str, int]:
        """Outcome and version."""
        definition = definition or upstream_of()
        row = {
            name: getattr(definition, name) for name in ("name", "base_url", "credential_in", "vocabulary", "counts")
        }
        limits = json.dumps(dict(definition.limits.columns))
        [found] = self.rows(
            "SELECT * FROM livewell.apply_upstream(%s::jsonb, %s::jsonb, %s)",
            documents.write({**row, "definition": definition.document}),
            limits,
            list(definition.credentials),
        )
        return found

    def apply(self, definition: TypeDefinition, **columns: Any) -> Answer:
        """Apply a type; columns of the row may be given by hand."""
        text = documents.write({**type_row(definition), **columns})
        return Answer(*self.rows("SELECT * FROM livewell.apply_type(%s::jsonb)", text)[0])

    def write(self, name: str, values: dict[str, list[dict[str, Any]]]) -> int:
        """write_values() as the store calls it."""
        rows = [{"key": key, **row} for key, given in values.items() for row in given]
        found: int = self.value(
            "SELECT livewell.write_values(t, %s, %s::jsonb) FROM livewell.data_type t WHERE t.name = %s",
            sorted(values),
            json.dumps(rows),
            name,
        )
        return found

    def store(self, definition: TypeDefinition, key: str, body: str) -> int:
        """Validate an answer and write it."""
        found = validate(definition, [key], body.encode(), content_type=None, now=NOW)[key]
        assert isinstance(found, Value), found
        return self.write(definition.name, {key: found.rows})

    def read(self, name: str, *keys: str) -> dict[str, Any]:
        """read_values()."""
        return dict(self.rows("SELECT key, value FROM livewell.read_values(%s, %s)", name, list(keys)))
