"""Benchmarks: compared with peers in one run; figures, never tests."""
