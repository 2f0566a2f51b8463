"""The only HTTP client: address guard, bounded body, deadline, byte count, wall classifier."""
