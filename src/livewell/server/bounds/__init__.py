"""What one client may have of a server at once: request rate, slots, its line, waiting reads."""
