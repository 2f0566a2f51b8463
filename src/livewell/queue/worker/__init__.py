"""The worker, one small room per duty.

worker     the life of it: register, run, be buried and rise again, stop
holding    what we hold: the jobs claimed and not yet acknowledged as finished
exchange   claimer and finisher in one call: results out, new jobs in
slots      the fixed set of slots that run handlers
keeper     the heartbeat, in its own thread with its own connection
upkeep     promote and recover, statistics, progress, history partitions
supervisor several worker processes under one command
"""
