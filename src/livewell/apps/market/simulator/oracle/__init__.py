"""What the simulator's own log proves about a product that called it.

    log ──▶ evidence (who was answered what, and when) ──▶ judge: stored values, verdicts, limits, faults that fired

log             one line for each call, appended; its reader
evidence        the log by key, and the market in which every true answer can be made again
judge           the questions a demo or a test asks
verdict_check   is what the product said of a key true?
same_value      is a stored value the one that was served?
"""
