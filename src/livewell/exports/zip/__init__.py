"""A ZIP of many exports, as a stream whose length is known before its first byte.

names      names that every system can unpack, and no two alike
archive    members, manifest, length, and any range of the bytes
layout     the records of the ZIP format
"""
