"""One call to the upstream: the request, the exchange, the wall or the bytes."""
