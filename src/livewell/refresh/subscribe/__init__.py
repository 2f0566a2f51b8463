"""Who watches what: sessions, heartbeats, subscriptions, and the sweep of clients that left."""
