"""Faults: real processes, real servers, an oracle outside.

`make faults` runs them at full length.
"""
