"""One small file for each kind of receiver."""
