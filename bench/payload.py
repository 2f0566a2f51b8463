"""The payload every system in the comparison gets: about 100 bytes of JSON.

bench/peers/node/stage.mjs has the same.
"""

PAYLOAD = {"text": "x" * 86}
