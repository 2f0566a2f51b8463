"""Routes, one file per capability. What is served stands in ROUTERS, and nowhere else."""

from livewell.server import pages
from livewell.server.routes import (
    alerts,
    data,
    health,
    job_stream,
    jobs,
    mend,
    operations,
    plan,
    schedules,
    types,
    viewers,
    warnings,
)
from livewell.server.routes import logins as login

__all__ = ["ROUTERS"]

ROUTERS = (
    health.router,
    schedules.health,
    login.router,
    viewers.router,
    data.router,
    types.router,
    plan.router,
    jobs.router,
    job_stream.router,
    schedules.router,
    operations.router,
    mend.router,
    alerts.router,
    warnings.router,
    pages.router,
)
