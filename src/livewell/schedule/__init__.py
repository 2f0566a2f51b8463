"""Periodic work: leases with a fence, so that nothing overlaps itself; schedules, and the history of their runs.

Read slots.py (when), definition.py (what), scheduler.py (the loop), running.py (one run); singleton.py is for loops that turn many times a second.
work.py puts a worker together from what capabilities do in it.
"""
