"""The payload every system in the comparison gets: about 100 bytes of JSON."""

PAYLOAD = {"text": "x" * 86}
