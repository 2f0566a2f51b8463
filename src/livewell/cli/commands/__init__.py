"""One file per command or command group; livewell.cli lists them."""
