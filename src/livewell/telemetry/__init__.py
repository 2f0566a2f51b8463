"""What Livewell tells about itself, and what it never tells.

logs.py                log lines, for people or as JSON
measures.py            counters and histograms of this process
last_hour.py           how many of something there were in the last hour
gauge.py               a gauge as a capability describes it
system_state.py        the parts of the system's state, as they are read
tracing.py             OpenTelemetry spans, where a provider is set
tracebacks.py          tracebacks as bounded text without secrets
repeats.py             a storm of one cause is a few lines and a count
redact.py              secrets by name and by shape are masked
secret_forms.py        a known secret in every encoding it may take
control_characters.py  nothing that drives a terminal is printed
"""
