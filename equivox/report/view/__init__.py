"""The explorer: a static page that shows single answers of runs, and a thin server for it.

`build.py` makes tables and documents of some runs that the page (`page/`) reads; `server.py` serves them together with
recordings.
"""
