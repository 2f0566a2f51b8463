"""Routes, one file per capability. What is served stands in ROUTERS, and nowhere else."""

from livewell.server.routes import health, job_stream, viewers

__all__ = ["ROUTERS"]

ROUTERS = (health.router, viewers.router, job_stream.router)
