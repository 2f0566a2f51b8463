"""The peers, one file each, at the settings that make each fastest here.

Which of them are there is found out at the start of a run, and said.
"""
