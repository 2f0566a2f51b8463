"""Keep what people watch fresh. The folders are the steps a value passes, in this order:

definition/   what a data type is: its file, key pattern, columns (pure)
registry/     1  types and upstreams in the database: apply, read, record samples
subscribe/    2  sessions, heartbeats and subscriptions: who watches what
due/          3  what is watched and stale becomes jobs, in the order of its viewers
fetch/        4  one call to the upstream: a body, or a result where there is none
validate/     5  bytes in, a result for each key out (pure)
store/        6  the only writer of values: value, ledger, bytes and job end together
push/         7  followers in this process hear what changed
read/         8  get and watch, for Python callers
plan/         what freshness the limits allow, and what to slow down

task.py         the job that refreshes keys: it conducts fetch, validate, store
result.py       what became of a key: one of seven results, the same in all three steps
job_payload.py  what a refresh job asks for
redaction.py    no result leaves with a secret in it
added_fields.py fields that an upstream has added, in a warning
why.py          why a key is fresh, or what stands in the way
reading.py      a value with its provenance and verdict
reasons.py      why an answer was not stored: a closed list
refusal_log.py  refused answers in the log, a few of each kind
nudges.py       the channels that wake the due check, the hubs and the servers
verdict_clock.py the clock on which a verdict's remaining time is counted
freshness.py    how much of what is followed can be trusted now
transforms.py   functions that a program registers for odd types
worker_part.py  what a worker does for refreshes
capability.py   what refresh offers to the rest of the house
doctor.py       checks of the doctor
gauges.py       its gauges
stuck.py        its lines in `livewell state`
queues.py       how the queue of a type is called
"""
