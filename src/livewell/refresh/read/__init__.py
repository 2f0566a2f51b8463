"""get and watch, as Python callers use them."""
