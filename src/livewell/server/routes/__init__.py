"""Routes, one file per capability. What is served stands in ROUTERS, and nowhere else."""

from livewell.server import pages
from livewell.server.routes import alerts, data, health, job_stream, jobs, login, types, viewers, warnings

__all__ = ["ROUTERS"]

ROUTERS = (
    health.router,
    login.router,
    viewers.router,
    data.router,
    types.router,
    jobs.router,
    job_stream.router,
    alerts.router,
    warnings.router,
    pages.router,
)
