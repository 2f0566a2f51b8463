"""One module per code of the fault plan."""
