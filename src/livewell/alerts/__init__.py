"""Telling people what is wrong: alerts that fire once, and a ledger of every attempt to tell somebody.

Rules (of operations, and of whoever else has a condition) call livewell.observe_alerts in SQL. Read deliver.py (one turn), then channel (whom),
message (what), verdict (what became of it).
"""
