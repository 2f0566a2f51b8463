"""Everything that can be set, checked once at start-up.

    flags (keywords)  ▶  environment (LIVEWELL_*, DATABASE_URL)  ▶  livewell.toml  ▶  defaults     the first wins

fields.py is what there is; values.py how values of each kind are read; sources.py where they come from; words.py how they are told; page.py the page of them all.
"""

from livewell.settings.fields import Settings
from livewell.settings.values import AlertChannel, Issuer

__all__ = ["AlertChannel", "Issuer", "Settings"]
