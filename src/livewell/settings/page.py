"""Make the page docs/reference/settings.md from the fields.

`python -m livewell.settings > docs/reference/settings.md`
"""

from pydantic.fields import FieldInfo

from livewell.settings.fields import Settings
from livewell.settings.rules import RULES
from livewell.settings.words import allowed, text

# The first setting of each section.
_SECTIONS = {
    "database_url": "Where things are",
    "pool_size_max": "Connections",
    "heartbeat_seconds": "Leases and recovery",
    "worker_slots": "Workers",
    "payload_bytes_max": "Bounds and housekeeping",
    "outbound_hosts": "Calls to upstreams",
    "store_batch_max": "Refreshes and viewers",
    "http_host": "The HTTP server",
    "alert_channels": "Alerts",
    "sinks": "The outbox",
    "export_store": "Exports",
    "metrics_address": "Metrics",
    "log_level": "Logging",
}

_PAGE_HEAD = """\
# Settings

<!-- Made by `python -m livewell.settings > docs/reference/settings.md`; do not edit. -->

A setting is given, the first that has a value wins:

1. as a flag or keyword: `--lease-seconds 45`, `Settings.load(lease_seconds=45)`
2. in the environment: `LIVEWELL_LEASE_SECONDS=45`
3. at the top level of `livewell.toml` in the current folder, or of the file named by `LIVEWELL_CONFIG`:
   `lease_seconds = 45`

All are checked at start-up. A wrong value, an unknown `LIVEWELL_*` variable or an unknown key in the file ends the
program with exit code 2 and a line that names it. An empty variable is a wrong value: unset it instead.
`LIVEWELL_TEST_*` variables, and those Kubernetes makes for a service called `livewell…`, are left alone. Relative paths
start at the current folder.
"""


def fields() -> list[tuple[str, FieldInfo]]:
    """In the order of the page: those of exports, which are a base class of their own, come last."""
    return sorted(Settings.model_fields.items(), key=lambda one: one[0].startswith("export_"))


def reference_page() -> str:
    """The text of docs/reference/settings.md."""
    lines = [_PAGE_HEAD]
    for name, info in fields():
        if name in _SECTIONS:
            lines += [*([""] if len(lines) > 1 else []), f"## {_SECTIONS[name]}", ""]
            lines += ["| setting | default | allowed | meaning |", "|---|---|---|---|"]
        lines.append(f"| `{name}` | {text(info.default)} | {allowed(info)} | {info.description} |")
    lines += ["", "## Together", "", *(f"- {rule}." for rule in RULES), ""]
    return "\n".join(lines)
