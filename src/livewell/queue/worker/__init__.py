"""The worker, one module for each thing it does.

worker.py         its life: register, run, be buried and start anew, stop
claim_ahead.py    results out and new jobs in, by one call
claim_limited.py  claims from limited queues: only what may be called now
holding.py        the jobs that were claimed and are not yet acknowledged as finished
slots.py          the fixed set of slots that run handlers
threads.py        threads for handlers that block
pace.py           how many jobs will have run in a moment: how far to claim ahead
marks.py          where to go on looking while looking from the start is slow
keeper.py         the heartbeat, in a thread and a connection of its own
upkeep.py         promote and recover, statistics, progress, history partitions
supervisor.py     several worker processes under one command
"""
