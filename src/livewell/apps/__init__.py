"""Complete small products on the capabilities below. They import nothing of each other.

market/   Financial Modeling Prep: its types, a simulator of it, and the demo of `livewell demo`
contacts/ who is this: people and the identities they are known by
resumes/  documents of people in versions, and how they become PDFs
tour/     the queue alone: thousands of jobs, two workers, one of them killed
plain.py  the app without tasks: workers run it when no app is named
kit/      what demos share
capability.py  what apps offer to the rest
"""
