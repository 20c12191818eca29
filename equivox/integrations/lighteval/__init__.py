"""equivox tasks inside lighteval: its registry finds them, its backends answer, equivox annotates and scores.

`runs`
    The run directory in which the answers of both kinds of backend are stored and scored, the settings from the
    environment, and errors as one line.
`table`
    Tasks, documents and metric in lighteval's format; the only module here that imports lighteval.

`equivox.integrations.lighteval.model` is the custom model that answers with equivox's engines.
"""

from __future__ import annotations

from pathlib import Path

MODEL_FILE = Path(__file__).with_name("model.py")
"""The file of the custom model, for `lighteval custom NAME FILE TASKS`."""
