"""Programs for people who change Livewell; `make check` runs some of them."""
