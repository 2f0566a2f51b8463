"""Keep what is watched fresh: registry, subscriptions, due check, fetch, validate, store."""
