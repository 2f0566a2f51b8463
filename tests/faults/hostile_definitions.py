"""Malicious and broken definitions (F-F1).

Files as bytes, documents as a registry row would hold them, and rows that only the owner could
write by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from tests.support.refresh_types import QUOTE, UPSTREAM, changed

_BASE = b"""
[type]
name = "quote"
upstream = "fmp"
ttl = "1m"
negative_ttl = "1h"
strategy = "on_demand"
size_estimate = 700
"""

FILES: dict[str, bytes] = {
    "empty": b"",
    "only a comment": b"# nothing",
    "not TOML": b"[type\nname=",
    "not UTF-8": b'[type]\nname = "\xff\xfe"',
    "UTF-16": "[type]".encode("utf-16"),
    "NUL": b'[type]\nname = "a\x00b"',
    "escaped NUL": b'[type]\nname = "a\\u0000b"',
    "half a surrogate": b'[type]\nname = "\\ud800"',
    "a megabyte": b"# " + b"x" * 1_000_000,
    "a field of a megabyte": b'[type]\nname = "' + b"a" * 1_000_000 + b'"',
    "deep arrays": b"x = " + b"[" * 5000 + b"]" * 5000,
    "deep tables": b"[" + b".".join(b"a" for _ in range(5000)) + b"]\nx = 1",
    "deep inline tables": b"x = " + b"{a=" * 1500 + b"1" + b"}" * 1500,
    "a table too deep by a few": b"[type." + b".".join(b"a" for _ in range(20)) + b"]\nx = 1",
    "thirty thousand values": b"x = [" + b"1," * 30_000 + b"]",
    "a number of a million digits": b"x = " + b"9" * 400_000,
    "a float of a million digits": b"x = 0." + b"9" * 400_000,
    "an exponent of a million": b"x = 1e1000000",
    "nan": b"[columns]\np = { type = 'numeric', min = nan }",
    "infinity": b"[columns]\np = { type = 'numeric', max = inf }",
    "both an upstream and a type": b"[upstream]\nname = 'a'\n[type]\nname = 'b'",
    "an upstream with a stranger": b"[upstream]\nname = 'a'\n[exec]\nx = 1",
    "a type that is a list": b"type = [1, 2]",
    "a type without the rest": _BASE,
    "one table twice": _BASE + _BASE,
    "Windows device": b"[type]\nname = 'CON:'\n",
    "JSON instead": b'{"type": {"name": "quote"}}',
    "YAML with an object": b"!!python/object/apply:os.system ['true']",
    "a shell line": b"$(touch /tmp/pwned)",
}


def _types() -> Iterator[tuple[str, dict[str, Any]]]:
    for number, name in enumerate(
        [
            "x; DROP TABLE livewell.job; --",
            'x"',
            "x'",
            "../x",
            "X",
            "1x",
            "",
            "a" * 49,
            "a b",
            "a.b",
            "a\nb",
            "quote--",
            "pg_temp.x",
            "x\u202ey",
            "é",
            None,
            5,
            ["x"],
        ]
    ):
        yield f"type name {number}", changed(QUOTE, type={"name": name})
    for ttl in [
        "0s",
        "0",
        "-1m",
        "-0s",
        "401d",
        "1e9d",
        "999999999999d",
        "NaN",
        "inf",
        "",
        "1 fortnight",
        60,
        Decimal("1.5"),
        True,
        None,
        {"m": 1},
        "1m; DROP",
        "9" * 1000 + "d",
    ]:
        yield f"ttl {str(ttl)[:20]}", changed(QUOTE, type={"ttl": ttl})
    yield "negative ttl of zero", changed(QUOTE, type={"negative_ttl": "0s"})
    for cron in [
        "* * * * * *",
        "",
        "0 0 31 2 *",
        "@daily",
        "61 * * * *",
        "a b c d e",
        ",".join(map(str, range(60))) + " * * * *",
        "*/0 * * * *",
        "0 0 * * 9",
        "* * * *",
        "0 0 1 1 1 2099",
        "*/1" * 20,
    ]:
        yield f"cron {cron[:20]}", changed(QUOTE, type={"strategy": "scheduled", "cron": cron, "zone": "UTC"})
    for zone in [
        "../../etc/passwd",
        "/etc/localtime",
        "Mars/Base",
        "America",
        "UTC\x00",
        "",
        "a" * 300,
        "Europe/../UTC",
    ]:
        yield f"zone {zone[:20]}", changed(QUOTE, type={"strategy": "scheduled", "cron": "0 6 * * *", "zone": zone})
    yield "cron without schedule", changed(QUOTE, type={"cron": "0 6 * * *"})
    yield "strategy of its own", changed(QUOTE, type={"strategy": "always"})
    yield "a lane in the registry", changed(QUOTE, type={"lane": 0})
    yield "a priority in the registry", changed(QUOTE, type={"priority": 1000})
    for size in [0, -1, 10**12, "700", True, Decimal("1.5")]:
        yield f"size {size}", changed(QUOTE, type={"size_estimate": size})
    yield "pool with a dot", changed(QUOTE, type={"pool": "a.b"})
    yield "SQL in a key nobody knows", changed(QUOTE, type={"on_apply": "DROP TABLE livewell.job"})


def _fetches() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in [
        "../admin", "/../../etc/passwd", "/a/../b", "/./a", "//evil.example/x", "/a//b", "https://evil.example/", "/a?x=1", "/a#b", "/a b", "/a\r\nHost: evil", "/a%2e%2e/b", "/a\\b", "@evil.example/", ":8080/x",
        "/{key}{other}", "/{0}", "/{key.__class__}", "/{{key}}", "/${key}", "/a;b", "", "a", "/" + "a" * 400, "/é", "/{keys}", "/{key!r}", "/{key:>99999999}",
    ]:  # fmt: skip
        yield f"path {path[:24]!r}", changed(QUOTE, fetch={"path": path})
    for value in [
        "{key.__init__.__globals__}",
        "{key}{x}",
        "{0}",
        "{",
        "}",
        "a\r\nX: y",
        "{key:>999999999}",
        "{{key}}",
        "%s",
        "x" * 300,
        "{keys}",
        5,
        ["{key}"],
        "\x00",
        "{key}&admin=1",
        "{key}#",
        "<script>",
        "`id`",
    ]:
        yield (
            f"query value {str(value)[:20]!r}",
            changed(QUOTE, fetch={"query": {"symbol": value}}),
        )
    for name in ["", "a b", "a&b", "a=b", "symbol\r\n", "x" * 65, "é"]:
        yield f"query name {name[:10]!r}", changed(QUOTE, fetch={"query": {name: "{key}"}})
    yield "many parameters", changed(QUOTE, fetch={"query": {**{f"p{n}": "1" for n in range(30)}, "symbol": "{key}"}})
    yield "no place for the key", changed(QUOTE, fetch={"query": {"symbol": "AAPL"}})
    for pattern in [
        "(a+)+$",
        "(a|aa)+",
        ".*",
        "[A-Z]*",
        "[A-Z]+",
        "^A$",
        "[^/]{1,9}",
        "(?:x)",
        "A{1,99999}",
        "[A-Z]{1,200}[A-Z]{1,200}",
        "\\x00",
        "(?i)a",
        "[",
        "a" * 500,
        "",
        "A",
        "[[:alpha:]]{1,5}",
        "(?=a)a",
        "\\p{L}",
        "A{0,1}",
    ]:
        yield f"key pattern {pattern[:20]}", changed(QUOTE, fetch={"key_pattern": pattern})
    for size in [0, -1, 10**12, "1MB", True]:
        yield f"body limit {size}", changed(QUOTE, fetch={"body_bytes_max": size})
    batches: list[dict[str, Any]] = [
        {"keys_max": 1},
        {"keys_max": 10**6},
        {"separator": "A"},
        {"separator": "&"},
        {"separator": ",,"},
        {"path": "//x"},
        {"query": {"symbols": "{key}"}},
        {"evil": 1},
    ]
    for batch in batches:
        yield f"batch {batch}", changed(QUOTE, fetch={"batch": {**QUOTE["fetch"]["batch"], **batch}})
    yield "headers of its own", changed(QUOTE, fetch={"headers": {"Host": "evil.example"}})
    yield "a method", changed(QUOTE, fetch={"method": "DELETE"})


def _answers() -> Iterator[tuple[str, dict[str, Any]]]:
    for rows in [
        "", "[", "@" * 300, "[@,@][]", "[@,@][].[@,@][].[@,@][]", "{a: @, b: @}", "map(&@, @)", "sort_by(@, &x)", "join('', @)", "to_string(@)", "((((((((((((((((((((((((((((((@))))))))))))))))))))))))))))))[0]" + "[]" * 60,
        "__import__('os')", "a[?" * 40, "`" + "[" * 90 + "]" * 90 + "`", "unknown(@)", 5, None, "max_by(@, &a)", "[].[].[].[].[].[].[].[].[].[].[].[].[].[].[].[].[].[].[].[].[].[]",
    ]:  # fmt: skip
        yield f"rows {str(rows)[:24]}", changed(QUOTE, answer={"rows": rows})
    parts: list[dict[str, Any]] = [
        {"kind": "all"}, {"kind": "set"}, {"row_key": ["price"]}, {"kind": "set", "row_key": ["nothing"]}, {"kind": "set", "row_key": ["name"]}, {"kind": "set", "row_key": ["price", "price"]}, {"key": None}, {"no_echo": True}, {"key": []}, {"key": ["a"] * 20}, {"key": "x" * 200},
        {"rule": "eval"}, {"rule": "session"}, {"calendar": "XNYS"}, {"rule": "after_event"}, {"event": {"field": "x", "format": "date"}}, {"calendar": "x;y", "rule": "session"}, {"source_time": {"field": "t", "format": "strptime"}}, {"source_time": {"format": "date"}},
        {"source_time": {"field": "t", "format": "date", "zone": "../x"}}, {"source_time": None, "max_source_age": "5m"}, {"max_source_age": "0s"}, {"future_max": "-1s"}, {"future_max": "400d"}, {"transform": "os.system('x')"}, {"transform": "../x"}, {"transform": 5}, {"empty": "ok"}, {"ignore": ["x"] * 2}, {"ignore": ["x" * 200]}, {"exec": "x"},
    ]  # fmt: skip
    for part in parts:
        yield f"answer {str(part)[:40]}", changed(QUOTE, answer=part)


def _columns() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in [
        'a"b',
        "a;b",
        "a'b",
        "a b",
        "",
        "x" * 57,
        "a\x00b",
        "a\nb",
        "é",
        "key",
        "KEY",
        "ctid",
        "xmin",
        "price); DROP TABLE livewell.job; --",
        "a.b",
        "%I",
        "\\",
    ]:
        yield f"column name {name[:12]!r}", changed(QUOTE, columns={name: {"type": "text"}})
    for column in [
        {}, {"type": "text; DROP TABLE livewell.job"}, {"type": "varchar(10)"}, {"type": "serial"}, {"type": "regclass"}, {"type": "text[]"}, {"type": None}, {"type": "numeric", "default": "now()"}, {"type": "numeric", "check": "true); DROP TABLE x; --"}, {"type": "numeric", "min": "0); DROP TABLE livewell.job; --"},
        {"type": "numeric", "min": Decimal("NaN")}, {"type": "numeric", "min": Decimal("1E+400")}, {"type": "numeric", "min": 10**500}, {"type": "numeric", "min": 5, "max": 1}, {"type": "numeric", "min": 5, "max": 5, "above_min": True}, {"type": "numeric", "above_min": True}, {"type": "bigint", "min": Decimal("0.5")}, {"type": "bigint", "max": 10**19}, {"type": "date", "min": "yesterday"}, {"type": "date", "max": "infinity"},
        {"type": "text", "min": 1}, {"type": "text", "max_length": 0}, {"type": "text", "max_length": 10**9}, {"type": "text", "max_length": "10"}, {"type": "numeric", "max_length": 5}, {"type": "text", "empty_is_null": True}, {"type": "boolean", "empty_is_null": True, "nullable": True}, {"type": "numeric", "one_of": ["1"]}, {"type": "text", "one_of": "abc"}, {"type": "text", "one_of": ["x"] * 200},
        {"type": "text", "from": []}, {"type": "text", "from": [["a"]]}, {"type": "text", "from": "x" * 101}, {"type": "text", "from": ["a"] * 9}, {"type": "text", "nullable": "yes"}, {"type": "timestamptz", "zone": "Nowhere"}, {"type": "timestamptz", "format": "%Y"}, {"type": "text", "format": "date"}, {"type": "text", "generated": "1"}, "text", ["text"], 5,
    ]:  # fmt: skip
        yield f"column {str(column)[:50]}", changed(QUOTE, columns={"bad": column})
    yield "201 columns", {**QUOTE, "columns": {f"c{n}": {"type": "text"} for n in range(201)}}
    yield "no columns", {**QUOTE, "columns": {}}
    yield "columns as a list", {**QUOTE, "columns": [{"name": "a"}]}
    samples: list[dict[str, Any]] = [
        {"key": "no such key"},
        {"key": "../x"},
        {"body": ""},
        {"body": "x" * 300_000},
        {"body": 5},
        {"recorded": "yesterday"},
        {"recorded": None},
        {"body": None},
    ]
    for sample in samples:
        yield f"sample {str(sample)[:30]}", changed(QUOTE, sample=sample)
    yield "a stranger beside the tables", {**QUOTE, "hooks": {"after": "rm -rf /"}}
    yield "no sample", {part: value for part, value in QUOTE.items() if part != "sample"}


def _upstreams() -> Iterator[tuple[str, dict[str, Any]]]:
    for url in [
        "http://127.0.0.1:8080", "https://127.0.0.1", "https://localhost/x", "https://localhost.", "https://a.localhost", "https://10.0.0.1", "https://192.168.1.1", "https://169.254.169.254/latest/meta-data", "https://[::1]/", "https://0.0.0.0", "https://2130706433", "https://0x7f000001", "https://127.1", "https://017700000001", "https://100.64.0.1",
        "https://metadata.google.internal", "https://printer.local", "http://financialmodelingprep.com", "ftp://x.example", "file:///etc/passwd", "gopher://x.example", "javascript:alert(1)", "https://user:secret@x.example", "https://x.example?x=1", "https://x.example#y", "https://x.example/", "https://x.example//y", "https://x.example/../y", "https://x.example:99999", "https://x.example:0",
        "https://", "//x.example", "https://x.example\r\nHost: y", "https://x.example\\@y.example", "https://é.example", "https://x..example", "https://-x.example", "https://x.example/%2e%2e", "https://" + "a" * 300 + ".example", "https://x.example/{key}", "HTTPS://X.EXAMPLE", "", None, 5, "https://x .example", "https://198.18.0.1", "https://224.0.0.1",
    ]:  # fmt: skip
        yield f"base_url {str(url)[:30]!r}", changed(UPSTREAM, upstream={"base_url": url})
    parts: list[dict[str, Any]] = [
        {"name": "FMP"}, {"name": "a.b"}, {"name": "x'; --"}, {"name": "a" * 32}, {"credential_in": "cookie:x"}, {"credential_in": "header:Host"}, {"credential_in": "header:Content-Length"}, {"credential_in": "header:a\r\nb"}, {"credential_in": None}, {"credentials": None}, {"credentials": ["sk_live_abcdef0123456789"]}, {"credentials": ["FMP_API_KEY", "FMP_API_KEY"]}, {"credentials": "FMP_API_KEY"}, {"credentials": ["$(id)"]}, {"credentials": ["PATH=x"]},
        {"vocabulary": "eval"}, {"counts": "none"}, {"rate": "0/min"}, {"rate": "-5/min"}, {"rate": "1e99/min"}, {"rate": "300"}, {"rate": 300}, {"rate": ["300/min"]}, {"budget": "0GB/30d"}, {"budget": "20XB/30d"}, {"budget": "9e999GB/30d"}, {"budget_resets": "25:00"}, {"reserve": "200%"}, {"reserve": {"x": 1}}, {"reserve": "100%"}, {"burst": 0}, {"burst": "x"}, {"concurrency": 0}, {"concurrency": "ten"}, {"per_key": -1},
        {"breaker": 5}, {"breaker": {"failures": 0}}, {"breaker": {"open_for": "-1s"}}, {"breaker": {"share": []}}, {"breaker": {"what": 1}}, {"api_key": "secret"}, {"permit": "1 year"}, {"rate": "1" * 500 + "/min"},
    ]  # fmt: skip
    for part in parts:
        yield f"upstream {str(part)[:40]}", changed(UPSTREAM, upstream=part)


def documents() -> dict[str, dict[str, Any]]:
    """Everything that a row of the registry could hold; each must be refused."""
    return dict([*_types(), *_fetches(), *_answers(), *_columns(), *_upstreams()])


def _column(**parts: Any) -> list[dict[str, Any]]:
    return [{"name": "price", "type": "numeric", "nullable": True, "key": False, "bounds": {}, **parts}]


_DROP = "x'; DROP TABLE livewell.job; --"
# data_type rows as only the owner could write them, around the files: refused by the database, or
# harmless.
ROWS: dict[str, dict[str, Any]] = {
    "name with a quote": {"name": 'q"; DROP TABLE livewell.job; --'},
    "name with a schema": {"name": "livewell.job"},
    "ttl of zero": {"ttl": "0 seconds"},
    "negative ttl": {"ttl": "-1 day"},
    "no ttl": {"ttl": None},
    "ttl for ever": {"ttl": "infinity"},
    "ttl that is SQL": {"ttl": _DROP},
    "negative_ttl of zero": {"negative_ttl": "0 seconds"},
    "cron without schedule": {"cron": "* * * * *"},
    "rule of its own": {"rule": "always"},
    "kind of its own": {"rows_kind": "many"},
    "pool with SQL": {"pool": _DROP},
    "no keys": {"keys_max": 0},
    "many keys": {"keys_max": 30000},
    "no pattern": {"key_pattern": ""},
    "long pattern": {"key_pattern": "a" * 300},
    "size of nothing": {"size_estimate": 0},
    "upstream of nobody": {"upstream": "nobody"},
    "columns are no list": {"columns": {"a": 1}},
    "columns are a text": {"columns": "x"},
    "no columns": {"columns": None},
    "an empty list of columns": {"columns": []},
    "type that is SQL": {"columns": _column(type="text); DROP TABLE livewell.job; --")},
    "type outside the list": {"columns": _column(type="regclass")},
    "name that is SQL": {"columns": _column(name='x" int); DROP TABLE livewell.job; --')},
    "name with percent signs": {"columns": _column(name="%I%L%s%1$s")},
    "name that is too long": {"columns": _column(name="n" * 200)},
    "name twice": {"columns": _column() * 2},
    "name of ours": {"columns": _column(name="key")},
    "name of Postgres": {"columns": _column(name="ctid")},
    "no name": {"columns": _column(name=None)},
    "an empty name": {"columns": _column(name="")},
    "minimum that is SQL": {"columns": _column(bounds={"min": _DROP})},
    "minimum that calls": {"columns": _column(bounds={"min": "0) OR pg_sleep(10) IS NULL"})},
    "length that is SQL": {"columns": _column(type="text", bounds={"max_length": "1); DROP TABLE livewell.job"})},
    "one_of that is SQL": {"columns": _column(type="text", bounds={"one_of": ["}'::text[]); DROP TABLE livewell.job; --", '"', "\\"]})},
    "bounds that are a list": {"columns": _column(bounds=[1, 2])},
    "1601 columns": {"columns": [{"name": f"c{n}", "type": "text", "nullable": True, "key": False, "bounds": {}} for n in range(1601)]},
}  # fmt: skip
