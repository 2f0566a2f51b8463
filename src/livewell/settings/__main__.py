"""`python -m livewell.settings` prints the page of all settings."""

import sys

from livewell.settings.page import reference_page

sys.stdout.write(reference_page())
