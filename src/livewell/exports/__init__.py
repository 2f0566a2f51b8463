"""Documents of users, made into files in the background.

In the order of an export, whose states are drawn in model.py:

options.py       what a user may choose of a PDF
exporters.py     @app.exporter: what can be exported, who reads it, what renders it
exports.py       app.exports: ask, look, follow, cancel, delete, fetch
answers.py       answers of the database as values, refusals as exceptions
follow.py        followers of exports and batches, and the one reader of a process
task.py          one attempt: begin, read, render, store, finish
rendering.py     what rendering needs in one worker, and its report
render/          one document in a child process that can be killed
artifacts/       where files are: a folder or a bucket; links to them
zip/             a batch as one ZIP
downloads.py     ranges, validators and names of a download
model.py         states, reasons and answers
nudges.py        the channel that followers are woken by
declare.py       the queue of exports
duties.py        settling, cleaning, sweeping
worker_part.py   what a worker does for exports
capability.py    what exports offer to the rest
doctor.py        checks of the doctor
gauges.py        its gauges
stuck.py         its lines in `livewell state`
"""
