"""What the built-in capabilities offer as attributes of the app, for type checkers.

Nothing here exists at run time: `Livewell.__getattr__` asks the capabilities (capability.py), and a
capability of another package needs no line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from livewell.alerts.admin import AlertAdmin
    from livewell.exports.exporters import Exporters
    from livewell.exports.exports import Exports
    from livewell.operations.warnings import Warnings
    from livewell.outbox.emit import Emit
    from livewell.outbox.inbox import Inbox
    from livewell.outbox.outbox import Outbox
    from livewell.queue.admin import QueueAdmin
    from livewell.refresh.read.reads import Reads
    from livewell.schedule.admin import ScheduleAdmin


class Offers:
    """Attributes of `Livewell` by name: `app.outbox`, `app.exports` …"""

    admin: QueueAdmin
    alerts: AlertAdmin
    emit: Emit
    exporter: Exporters
    exports: Exports
    inbox: Inbox
    outbox: Outbox
    reads: Reads
    schedule_admin: ScheduleAdmin
    warnings: Warnings
