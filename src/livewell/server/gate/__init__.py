"""What every request passes before a route runs.

Host, origin, body, rate, a slot, and the line of its client.
"""
