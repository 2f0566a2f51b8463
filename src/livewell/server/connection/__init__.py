"""The socket before a caller is known.

Connections by address, deadlines, the HTTP protocol, and what was refused.
"""
