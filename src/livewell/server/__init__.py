"""HTTP: who may come in, what they may ask, and how the answers look.

request ──▶ guard (host, origin, size, who, how often) ──▶ route (scope, arguments) ──▶ capability ──▶ answer or problem

app.py        the application: routes, guard, problem documents, OpenAPI
state.py      what one server process holds: pools, keys, limits
pools.py      one pool per database role
guard.py      what every request passes before any route sees it
auth.py       who is calling: API key, login cookie or JSON Web Token
buckets.py    how often one client may ask
problems.py   errors as RFC 9457 problem documents
wire.py       JSON as it is sent; pages of lists
routes/       one file per capability
"""
