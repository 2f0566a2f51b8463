"""`livewell demo resumes`: twenty users export their documents while what renders them is killed.

race     the run: database, store, server, workers, users, kills, and waiting for the end
client   HTTP as one user speaks it, and the log of what was downloaded
people   what a résumé of the demo says
user     what a user does: write, export, batch, cancel, delete, follow, download
kills    kill -9 of rendering children and of workers
remake   the same version and options, rendered once more in a child of our own
verdict  what the users' logs say, beside the rows, the files and the second rendering
"""
