"""Résumés, as a capability."""

from pathlib import Path

from livewell.capability import Capability, CommandEntry, Page
from livewell.web import RESUMES

CAPABILITY = Capability(
    name="resumes",
    migrations=Path(__file__).parent / "sql",
    declare="livewell.apps.resumes.exporter:declare",
    api={"resumes": "livewell.apps.resumes.resumes:Resumes.of"},
    routes=("livewell.server.routes.resumes:router",),
    commands=(CommandEntry("resumes", "livewell.cli.commands.resumes:resumes", "Look and mend", 117),),
    pages=(Page("/resumes", "Where are my documents?", "My documents", RESUMES / "resumes.html"),),
)
