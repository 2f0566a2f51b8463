"""The channels that workers are nudged by. Any other name is that of a queue: it may have work."""

CANCEL = "cancel"  # somebody asked to cancel a running job: every worker sends its heartbeat at once
ACTS = "acts"  # somebody asked for an act on many: a worker begins it
EVERY = "*"  # something changed in some queue: everybody looks
