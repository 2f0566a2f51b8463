"""What every request passes before a route runs.

Its host, origin, body and rate are checked; then it takes a slot, and stands in its client's line.
"""
