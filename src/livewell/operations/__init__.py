"""Looking after a running system.

state.py     the whole system in one query
gauges.py    every gauge, and where in the state it is
metrics.py   gauges, counters and histograms as Prometheus reads them
endpoint.py  a worker's own metrics page
warnings.py  what was tolerated, and how often
doctor/      what is wrong, and the command that mends it
duties.py    what is done by the clock: the figures of each minute
audit.py     who did what, by page, HTTP and command line
bulk_acts.py  a worker's loop that does acts on many
manual.py    the pages of the documentation
mend.py      what operators do when the system cannot help itself
capability.py  what operations offer to the rest
"""
