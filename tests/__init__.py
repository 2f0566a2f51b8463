"""Tests, by level: unit, sql, races, model, worker, contracts, faults, apps.

See CONTRIBUTING.md.
"""
