"""Beacons: programs elsewhere report that they are alive, and whoever falls silent is noticed."""
