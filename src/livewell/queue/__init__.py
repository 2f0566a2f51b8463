"""Durable jobs: enqueue, claim, finish, and the worker that runs them.

The state machine lives in sql/; this package drives it and does the I/O. Read in this order: task, enqueue, worker/, dead.
"""
