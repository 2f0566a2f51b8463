"""Watched keys that are stale become jobs, as far as the limits allow."""
