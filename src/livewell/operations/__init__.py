"""Looking after a running system: its state in one query, metrics, and a doctor who names what is wrong and what mends it."""
