"""People's labels of a run's answers: out, in, their agreement with the annotator, and the scores that they correct.

`drawing`
    Which answers people label, and what they see of them: a random draw, spread over models, tasks and groups. Or
    wordings whose meanings they name.
`sheet`
    A label folder: what is asked as a table, its media, and the key that says what each item is.
`labels`
    Labels beside what the annotator found: one unit for each attribute of each item.
`agreement`
    How often the annotator and people agree, and on what they differ.
`correction`
    Scores as people would have annotated the answers.
`stored`, `kept`
    The result as it stays with a run: read, written, and computed again.
"""
