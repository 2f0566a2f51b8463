"""Server-sent events: one stream per client, fed by a source (a session's readings, a job's progress)."""
