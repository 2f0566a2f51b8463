"""What a browser gets. Plain files and templates, no build step; the server serves them.

    client/     livewell.js: the module that pages of any origin may load
    ui/         what all our pages share: tokens, components, charts; uplot/ is uPlot, as published
    dashboard/  the templates of the operators' pages, and what is live on them
    market/     the market page
    resumes/    my documents: what people edit and export
    login/      the login page, and the page for what is not there

Files are served under their name alone, so a name must not occur in two folders.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent
CLIENT = ROOT / "client"
UI = ROOT / "ui"
DASHBOARD = ROOT / "dashboard"
MARKET = ROOT / "market"
RESUMES = ROOT / "resumes"
LOGIN = ROOT / "login"
ASSETS = (
    CLIENT,
    UI,
    UI / "uplot",
    DASHBOARD,
    MARKET,
    RESUMES,
    LOGIN,
)  # folders whose scripts, styles and pictures are served
