"""A real Chromium before a real server."""
