"""equivox tasks inside lighteval: its registry finds them, its backends answer them, equivox reads and scores them.

`settings`
    What lighteval's command line has no option for, read from the environment; errors as one line.
`rows`
    What stands in lighteval's files about one request and one task.
`runs`
    From answers to scores: the run directory that both kinds of backend end in.
`table`
    Tasks, documents and metric as lighteval wants them; the only module here that imports it.

`equivox.integrations.lighteval.model` is the custom model that answers with equivox's own engines.
"""

from __future__ import annotations

from pathlib import Path

MODEL_FILE = Path(__file__).with_name("model.py")
"""The custom model, as `lighteval custom NAME FILE TASKS` takes it."""
