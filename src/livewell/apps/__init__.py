"""Complete small products on the capabilities below. Today: the tour, which `livewell demo` runs."""
