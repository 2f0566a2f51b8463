"""The market demo: a simulated upstream, a crowd of simulated viewers, a worker, and everything they look at kept fresh.

plan        how many viewers, symbols and accounts, and what the types' files say differently here
postgres    a database of its own, and the embedded server started again when it is gone
kept        the worker, the server and the simulator, each started again when it dies
site        the server, where it is, and the link that lets a browser in
streams     viewers over HTTP, who count what is pushed to them
crowd       viewers who come, look at a few symbols, and go
figures     what the database and the simulator say, once a second
witness     every value that was ever stored, and what was said of it, for the judge
tally       the figures of the whole run, judged by the simulator's own log
screen      a live table in a terminal, lines elsewhere
market      the steps, in order
"""
