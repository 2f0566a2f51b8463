"""Tell the followers in this process what changed: one hub, one state per key, shared by all."""
