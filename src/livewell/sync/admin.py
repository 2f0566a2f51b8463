"""What people do with a queue, from blocking code."""

from __future__ import annotations

from livewell.queue.admin import QueueAdmin
from livewell.sync.mirror import Mirror, blocking


class SyncAdmin(Mirror[QueueAdmin]):
    """`app.sync.admin`: every method of `app.admin`."""

    queues = blocking(QueueAdmin.queues)
    workers = blocking(QueueAdmin.workers)
    worker = blocking(QueueAdmin.worker)
    held = blocking(QueueAdmin.held)
    lost = blocking(QueueAdmin.lost)
    limiters = blocking(QueueAdmin.limiters)
    pause = blocking(QueueAdmin.pause)
    jobs = blocking(QueueAdmin.jobs)
    find = blocking(QueueAdmin.find)
    count = blocking(QueueAdmin.count)
    job = blocking(QueueAdmin.job)
    links = blocking(QueueAdmin.links)
    batch = blocking(QueueAdmin.batch)
    batches = blocking(QueueAdmin.batches)
    find_queues = blocking(QueueAdmin.find_queues)
    count_queues = blocking(QueueAdmin.count_queues)
    pause_all = blocking(QueueAdmin.pause_all)
    why = blocking(QueueAdmin.why)
    cancel = blocking(QueueAdmin.cancel)
    retry = blocking(QueueAdmin.retry)
    dead = blocking(QueueAdmin.dead)
    letter = blocking(QueueAdmin.letter)
    edit = blocking(QueueAdmin.edit)
    discard = blocking(QueueAdmin.discard)
    redrive = blocking(QueueAdmin.redrive)
