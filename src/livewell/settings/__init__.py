"""Everything that can be set, checked once at start-up.

    flags (keywords)  ▶  environment (LIVEWELL_*, DATABASE_URL)  ▶  livewell.toml  ▶  defaults

The first one wins.

fields.py    the settings, and the rules between them
values.py    how values of each kind are read
sources.py   where values come from
words.py     settings in words; secrets are never shown
page.py      the page of them all
"""

from livewell.settings.fields import Settings
from livewell.settings.values import AlertChannel, Issuer

__all__ = ["AlertChannel", "Issuer", "Settings"]
