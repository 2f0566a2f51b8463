"""HTTP. A request passes these folders in this order:

connection/   the socket: how many, how long, from where; the HTTP protocol
gate/         host, origin, size, rate and slots, before any route runs
bounds/       what one client may have at once: rate, slots, line, waiting reads
auth/         who is calling: API key, login cookie or JSON Web Token
routes/       one file per capability: scope, arguments, one call
answers/      how answers look: JSON, pages of lists, problem documents
streams/      answers that go on: server-sent events
dashboard/    the operators' pages: rendered here, acted on by forms, kept current by a stream

app.py             the application: routes, gate, problem documents, OpenAPI
serve.py           the listening server and its end
previews.py        page one of a document as a picture, drawn by a child of the server
process.py         what one server process holds: pools, limits, streams
pools.py           one pool per database role
pages.py           HTML pages and static files
depends.py         what routes ask for: the process, a caller with a scope
looks.py           what people who look at the dashboard use of the database
state_sampler.py   the state of the system, read once for everybody who looks
plan_sampler.py    the plan, made now and then for everybody who looks
findings.py        what the doctor found, asked once in 30 seconds at most
late_schedules.py  which schedules are late, asked once a second at most
capability.py      what the server offers to the rest of the house
doctor.py          a check of the doctor: what the gate refuses
"""
