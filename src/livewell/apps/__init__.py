"""Complete small products on the capabilities below.

market/   a market of Financial Modeling Prep: its types, a simulator, the demo
tour/     the queue alone: thousands of jobs, two workers, one of them killed
plain.py  the app without tasks: it only refreshes
"""
