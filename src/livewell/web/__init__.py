"""What a browser gets: the module livewell.js, the market page and the login page.

Plain files, no build step; the server serves them (server/pages.py).
"""

from __future__ import annotations

from pathlib import Path

STATIC = Path(__file__).parent / "static"
PAGES = Path(__file__).parent / "pages"
