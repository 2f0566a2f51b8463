"""Definitions in the database: applied from files, read by workers, changed by operators."""
