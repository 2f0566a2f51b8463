"""The outbox: events are committed with the business data, and leave exactly as they were committed.

emit.py          app.emit, in the caller's transaction or in one of its own
inbox.py         app.inbox: a consumer's effect happens once, however often the event arrives
outbox.py        app.outbox: topics and sinks, as they are declared
definition.py    what may be declared, by an app or in the settings
admin.py         what people do with it: look, pause, redrive, discard, remove, replay
event.py         an event on its way, in the terms of CloudEvents
sink.py          what a sink is, and how it says what became of an event
sinks/           one file for each kind of receiver
relay/           takes events to a sink
doctor.py        checks of the doctor
gauges.py        its gauges
stuck.py         what stands still, in few words
worker_part.py   what it does in a worker
duties.py        what it does by the clock
nudges.py        the channel that relays are nudged by
capability.py    what it offers to the rest
"""
