"""Complete small products on the capabilities below. They import nothing of each other; kit is what
they share.

market   Financial Modeling Prep: its types, a simulator of it, and the demo that `livewell demo` runs
tour     the tour of the queue, `livewell demo tour`
plain    the app without tasks, which workers run when none is named
kit      what demos share
"""
