"""What a worker does for exports: the task, the children, settling and cleaning.

A worker without the queue `exports` does none of it, and never opens the store.
"""

from __future__ import annotations

from livewell.exports.artifacts.open import open_store
from livewell.exports.duties import duties
from livewell.exports.model import KIND, QUEUE
from livewell.exports.rendering import Rendering
from livewell.exports.task import ExportTask
from livewell.schedule.work import Work, WorkerContext


def work(context: WorkerContext) -> Work:
    """For one worker."""
    exporters = context.declared["exporter"]
    if not context.works(QUEUE) or not exporters.kinds:
        return Work()
    database = context.database
    store = open_store(database.settings)
    rendering = Rendering(database, exporters=exporters, store=store, holder=context.holder)
    task = ExportTask(database, context.nudger, exporters=exporters, store=store, rendering=rendering)
    return Work(
        duties=duties(database, context.nudger, store),
        tasks={KIND: task.task},
        beside=[rendering.run],
    )
