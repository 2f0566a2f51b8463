"""Periodic work: leases with a fence, so that nothing overlaps itself."""
