"""`equivox view`: a server of the page and of single answers.

`shown` opens runs, `answers` and `media` read what it shows of each request, `server` and `connection` answer requests.
"""
