"""Résumés: documents of people, in versions, which become accessible PDFs. `app.resumes`.

    a page, a program ──▶ create, change ──checked by schema──▶ resume_version ──exporter──▶ a PDF (exports)

schema.py      JSON Resume, with the order and the titles of sections
resumes.py     documents: create, change, show, list, delete, each for one user (E16)
exporter.py    gives a version to the exports, and says how it is rendered
render.py      a version and options become a PDF, or a picture of its first page; runs in a child process
templates/     minimal, modern, compact, in typst
fonts.py       which characters can be printed; fonts/ has Noto Sans with its licence
capability.py  what résumés offer to the rest
"""
