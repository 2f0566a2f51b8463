"""The channel that relays are nudged by."""

EVENTS = "events"  # something was emitted, redriven or resumed: every relay claims at once
