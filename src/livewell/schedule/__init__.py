"""Periodic work: leases with a fence, so that nothing overlaps itself; schedules and their runs.

due_times.py     when a schedule is due, and which missed slots run (pure)
definition.py    what a schedule is made of
scheduler.py     the loop that runs schedules, in every worker
run.py           one run, from its beginning to its end
singleton.py     one holder in the fleet, for loops that turn many times a second
housekeeping.py  what is made in advance, and what is let go of
admin.py         look, ask for a run, pause, remove
"""
