"""Periodic work: leases with a fence, so that nothing overlaps itself; schedules and their runs.

cron.py          reads cron texts (pure)
cron_words.py    says rules in words (pure)
due_times.py     which slot of a schedule runs next, and which were missed (pure)
definition.py    what a schedule is made of
scheduler.py     the loop that begins runs; every worker has one
run.py           one run, from its beginning in the database to its end there
singleton.py     be the only one: for loops that turn many times a second
housekeeping.py  what is made in advance and what is let go of
duties.py        what the scheduler itself does by the clock
work.py          puts a worker together from what capabilities do in it
admin.py         what people do with schedules
nudges.py        the channel that wakes schedulers
capability.py    what the schedule offers to the rest
doctor.py        checks of the doctor
gauges.py        its gauges
stuck.py         its lines in `livewell state`
"""
