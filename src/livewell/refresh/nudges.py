"""The channels that the refresh engine is nudged by."""

DUE = "refresh.due"  # something stale is wanted: the due check looks; also the name of its singleton
CHANGED = "refresh.changed"  # values were stored: every hub looks
SESSIONS = "refresh.sessions"  # the subscriptions of a session changed: the server that streams it looks
