"""Durable jobs: enqueue, claim, finish, and the worker that runs them.

The state machine lives in sql/; this package drives it and does the I/O. In the order of a job:

definition.py  what a task is: a function with a name, a checked signature, a policy
task.py        the task as its callers hold it
enqueue.py     one job or many, in the caller's transaction or in one of our own
batch.py       jobs that are counted together, with a follow-up
worker/        claims, runs and finishes jobs, and keeps the lease
run.py         one claimed job, or the jobs of one call
job.py         the job as its handler sees it
outcomes.py    how runs ended, as finish_jobs is told
failures.py    failed jobs in the log
progress.py    follow jobs while they run
admin.py       look, pause, cancel, mend, redrive, discard
dead_letters.py  dead letters by time and by group
job_filter.py  which jobs a list or a page is about
bulk_acts.py   acts on all that match: count, ask for it, follow it
why.py         why a job is not running
declarations.py  queues and limiters that a program states, told to the database once
opened.py      what an opened app has of the queue
nudges.py      the channels that wake workers
capability.py  what the queue offers to the rest
doctor.py      checks of the doctor
gauges.py      its gauges
stuck.py       its lines in `livewell state`
"""
