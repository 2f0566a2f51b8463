"""One lab for each kind of store."""
