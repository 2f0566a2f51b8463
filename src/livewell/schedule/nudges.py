"""The channels that schedules are nudged by."""

SCHEDULE = "schedule"  # somebody asked for a run, or changed a schedule: every scheduler looks
