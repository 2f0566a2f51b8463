"""The dashboard: pages that the server renders for operators.

    capability.views, acts ──▶ frame ──Visit──▶ a page's panels ──▶ rendering ──▶ HTML
                                 │                                      ▲
                                 └── live: the same panels again, while a tab shows them

visit.py      what a page is given and what it answers
frame.py      one route for each view and each act of every capability
form.py       the token of forms, and what is said after an act
rendering.py  templates, and how they write numbers and times
live.py       the stream of an open page
pages/        the pages, one file for each question
"""
