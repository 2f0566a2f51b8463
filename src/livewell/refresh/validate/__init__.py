"""Bytes in, values or a typed refusal out. Pure.

Nothing here touches the network or the database.
"""
