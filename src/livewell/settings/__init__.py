"""Everything that can be set, checked once at start-up.

    flags (keywords)  ▶  environment (LIVEWELL_*, DATABASE_URL)  ▶  livewell.toml  ▶  defaults

The first one wins.

fields.py    the settings
exports.py   those of exports, a base of the settings
rules.py     the rules between them
values.py    how values of each kind are read
tables.py    settings that are lists of tables
sources.py   where values come from
words.py     settings in words; secrets are never shown
page.py      the page of them all
"""

from livewell.settings.fields import Settings
from livewell.settings.tables import AlertChannel, Issuer, SinkTable, TopicTable

__all__ = ["AlertChannel", "Issuer", "Settings", "SinkTable", "TopicTable"]
