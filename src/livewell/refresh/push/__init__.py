"""Followers in this process hear what changed: one hub, one state per key, shared by all."""
