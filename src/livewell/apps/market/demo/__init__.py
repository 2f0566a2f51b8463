"""The market demo: everything that hundreds of simulated viewers look at is kept fresh.

A simulated upstream gives the data, and a worker refreshes it.

    run ──▶ Postgres, schema ──▶ simulator, worker, server ──▶ types ──▶ viewers, http_viewers
                                                                              │ figures twice a second ──▶ screen
    totals ◀── the simulator's log judges all that recorder saw ◀── the end ◀─┘

run            the steps, in order
scenario       how many viewers, symbols and accounts, and what the types' files say differently here
processes      the worker and the simulator, each started again when it dies
site           the server, where it is, and the link that lets a browser in
viewers        people who come, look at a few symbols, and go
http_viewers   people over HTTP, who count what is pushed to them
figures        what the database and the simulator say, twice a second
screen         a live table in a terminal, lines elsewhere
recorder       every value that was ever stored, and what was said of it, for the judge
totals         the figures of the whole run, judged by the simulator's own log
"""
