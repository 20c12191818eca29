"""A run in the format of Every Eval Ever, schema 0.3: a document with the scores, and a row per response.

The schema is published in the package `every-eval-ever`; nothing of it is needed to write the files.

`results`
    The scores with their uncertainty, judges and settings.
`exporting`
    They and the rows as files, in the folders that the project's collection has.
"""
