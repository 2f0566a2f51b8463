"""The socket before anyone is known.

Connections by address, deadlines, the HTTP protocol, and what was refused.
"""
