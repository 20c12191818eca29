"""People's labels of a run's answers: a blind sheet, its labels, agreement with the annotator, corrected scores.

`drawing`
    The answers that people label: a random draw of every task and group.
`sheet`
    These answers as a CSV file that hides the group and the annotation.
`reading`
    The labels of a filled-in sheet, beside the annotator's values.
`agreement`, `correction`
    How often the annotator and people agree, and the scores that people's labels give.
`result`, `checking`
    Both as one result, which can be stored with the run and is then computed again by `verify`.
"""
