"""The version of this package, as it is written in worker rows and checked against the schema."""

from importlib.metadata import version

VERSION = version("livewell")
