"""`livewell demo contacts`: the same people sign up, log in and are imported at once, while workers are killed.

program   the app that workers run: one task that resolves, and a sink that writes a file
people    who there is, and what each call knows of them
race      the run: database, workers, calls, kills, and waiting for the end
verdict   what union-find says of the contacts, and what the receiver's log says of the events
"""
