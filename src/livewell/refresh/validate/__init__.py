"""Bytes in, values or a typed refusal out.

Pure: nothing here touches the network or the database.
"""
