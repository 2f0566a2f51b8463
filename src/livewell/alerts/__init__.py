"""Alerts: tell people what is wrong, once, and record every attempt to tell them.

Rules (of operations, and of other capabilities that have a condition) call livewell.observe_alerts
in SQL.

deliver.py           one turn: every channel at once, each attempt recorded before it is sent
channel.py           whom to tell
message.py           what is said, in the words of each kind of receiver
apprise_sender.py    channels that go through apprise
delivery_verdict.py  did it arrive, may it be tried again?
admin.py             look, and enable a channel again
rules.py             evaluates every alert rule, each by itself
duties.py            what it does by the clock: evaluate, deliver
capability.py        what alerts offer to the rest
doctor.py            checks of the doctor
gauges.py            its gauges
stuck.py             its lines in `livewell state`
"""
