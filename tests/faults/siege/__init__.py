"""Strangers who try to stop a server, and honest people beside them.

What the scenarios F-S1 to F-S11 are made of.
"""
