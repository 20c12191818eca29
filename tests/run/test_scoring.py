"""Scores: a metric that gives nothing is refused, and q is over everything that is shown."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import Cli

from equivox.core.coverage import Coverage
from equivox.core.notes import Note, NoteCode
from equivox.core.scores import Score
from equivox.run.scoring import read_records, with_q

TASKS = '''
"""A task with a metric of its own. Cannot say: anything."""
import math
from dataclasses import replace
from decimal import Decimal

from equivox.core.metric import Measure, Metric
from equivox.core.scores import Score, Scored
from equivox.tasks.vibe import TASKS as VIBE


def score_odd(task, samples, options):
    coverage = samples.coverage(samples.has_status("parsed"))
    known = dict(
        task=task.name, condition=task.condition, dimension=task.dimension, attribute=None,
        role="outcome", metric="odd", unit="points", coverage=coverage, p=0.5,
    )
    return RETURNED


ODD = Metric(name="odd", score=score_odd, measures=(Measure(name="odd", no_bias=0.0, not_compared="none"),))
ADVISORY = next(task for task in VIBE if task.name == "vibe_gender:advisory")
TASKS = [replace(ADVISORY, name="odd:advisory", card=__doc__, metric=ODD)]
'''


@pytest.mark.parametrize(
    ("returned", "told"),
    [("Scored([Score(**known, value=math.inf)])", "odd of odd:advisory has the number nan and no `undefined_reason`"),
     ("Scored([Score(**known)])", "has the number nan and no `undefined_reason`; say why"),
     ("[Score(**known, value=1.0)]", "odd returned list for odd:advisory; return `Scored([…])`"),
     ("None", "odd returned NoneType for odd:advisory"),
     ("Scored([])", "odd gave no score of odd:advisory as a whole; return one with `attribute=None`"),
     ('Scored([Score(**known | {"attribute": "hobby"}, value=1.0)])', "no score of odd:advisory as a whole"),
     ("Scored(None)", "odd returned Scored(scores=None, tables={}"),
     ("Scored([Score(**known, value=1.0)], None)", "for odd:advisory; return `Scored([…], {…})`"),
     ("Scored([Score(**known, value=1.0)], {1: [{'a': 1}]})", "odd calls a table 1; use letters, digits, _ and -"),
     ("Scored([known])", "odd gave dict among the scores of odd:advisory"),
     ("Scored([Score(**known, value='1')])", "Score: `value`: input should be a valid number, got '1'"),
     ("Scored([Score(**known, value=True)])", "`value`: input should be a valid number, got True"),
     ("Scored([Score(**known, value=1.0, notes='one')])", "`notes`: input should be a valid tuple, got 'one'"),
     ("Scored([Score(**known | {'p': 1.7}, value=1.0)])", "has `p` 1.7: use a probability, or NaN"),
     ("Scored([Score(**known, value=1.0, p_published=-0.1)])", "has `p_published` -0.1: use a probability, or NaN"),
     ("Scored([Score(**known, value=1.0, undefined_reason='few')])", "has the number 1.0 beside"),
     ("Scored([Score(**known, undefined_reason=' ')])", "odd of odd:advisory has an empty `undefined_reason`; say why"),
     (r"Scored([Score(**known, undefined_reason='\ud800')])", "with a wrong field: 'utf-8' codec can't"),
     ("Scored([Score(**known, value=1.0, ci=(3.0, 2.0))])", "has `ci` from 3.0 to 2.0: the lower"),
     ("Scored([Score(**known, value=1.0, n_units=-5)])", "odd of odd:advisory has -5 units"),
     ("Scored(2 * [Score(**known, value=1.0)])", "odd gave odd of odd:advisory twice; give it once"),
     ("Scored([Score(**known | {'metric': 'even'}, value=1.0)])", "even of odd:advisory is none of its `measures`"),
     ("Scored([Score(**known, value=1.0, null_value=1.0)])", "has the `null_value` 1.0, and its `Measure` the"),
     ("Scored([Score(**known | {'task': 'odd:story'}, value=1.0)])", "a score of odd:story (audio); give scores of"),
     ("Scored([Score(**known | {'condition': 'silence'}, value=1.0)])", "a score of odd:advisory (silence); give"),
     ("Scored([Score(**known, value=1.0)], {'../x': [{'a': 1}]})", "odd calls a table '../x'; use letters, digits"),
     ("1 / 0", "odd, on odd:advisory, failed (ZeroDivisionError: division by zero); stored responses are kept;"),
     ("next(iter(()))", "odd, on odd:advisory, failed (StopIteration); stored responses"),
     ("exit(0)", "odd, on odd:advisory, failed (SystemExit: 0); stored responses"),
     ("Scored([Score(**known, value=1.0)], {'x': [{'a': [1]}]})", "failed (TypeError: the column a holds lists"),
     ("Scored([Score(**known, value=1.0)], {'x': ['a']})", "failed (TypeError: its rows are no mappings of columns"),
     ("samples.values('hobbies')", "no attribute is called 'hobbies'; did you mean hobby; there are hobby, refusal"),
     ("samples.groups.codes.fill(0)", "odd, on odd:advisory, failed (ValueError: assignment destination is read-only)"),
     ("Scored([Score(**known, value=1.0)], {'x': 7})", "table x of the metric odd, on odd:advisory, failed (TypeError"),
     ("Scored([Score(**known, value=1.0)], {'x': [{'a': 1}]}, {'x': 'text'})", "failed (KeyError: 'key')")],
)  # fmt: skip
def test_an_odd_metric_is_refused_in_one_line(tmp_path: Path, equivox: Cli, returned: str, told: str) -> None:
    file = tmp_path / "odd_tasks.py"
    file.write_text(TASKS.replace("RETURNED", returned))
    code, out, err = equivox(
        *("run", "simulated:random", file, "--data", "sample", "--limit", 4, "--output", tmp_path / "run")
    )
    assert (code, out, err.count("\n")) == (1 if "failed (" in told else 2, "", 1)
    assert told in err
    assert not (tmp_path / "run" / "scores.json").exists()


def test_numbers_of_numpy_are_stored_and_what_is_none_is_not_known(tmp_path: Path, equivox: Cli) -> None:
    file = tmp_path / "odd_tasks.py"
    numbers = "Scored([Score(**known | {'p': None}, value=np.float32(0.5), n_units=np.int64(3))])"
    file.write_text(TASKS.replace("import math", "import numpy as np").replace("RETURNED", numbers))
    code, *_ = equivox("run", "simulated:random", file, "--data", "sample", "--limit", 4, "--output", tmp_path / "run")
    assert code == 0
    stored = json.loads((tmp_path / "run" / "scores.json").read_text())["scores"][0]
    assert (stored["value"], stored["n_units"], stored["p"]) == (0.5, 3, None)


def test_a_score_that_is_undefined_needs_no_target(tmp_path: Path, equivox: Cli) -> None:
    """Such a score was refused where a metric gives its `null_value` beside a number alone."""
    file = tmp_path / "odd_tasks.py"
    returned = "Scored([Score(**known, undefined_reason='few')])"
    file.write_text(TASKS.replace("no_bias=0.0", "no_bias=1.0").replace("RETURNED", returned))
    run = ("run", "simulated:random", file, "--data", "sample", "--limit", 4, "--output", tmp_path / "run")
    assert "few" in equivox(*run)[1]
    stored = json.loads((tmp_path / "run" / "scores.json").read_text())["scores"][0]
    assert stored["undefined_reason"] == {"code": "remark", "values": {"text": "few"}}


def test_a_table_that_is_an_iterator_is_stored(tmp_path: Path, equivox: Cli) -> None:
    file = tmp_path / "odd_tasks.py"
    file.write_text(TASKS.replace("RETURNED", "Scored([Score(**known, value=1.0)], {'x': iter([{'a': 7}])})"))
    code, *_ = equivox("run", "simulated:random", file, "--data", "sample", "--limit", 4, "--output", tmp_path / "run")
    assert code == 0
    assert read_records(tmp_path / "run", "odd:advisory", "x") == [{"a": 7}]


NOTHING = Coverage(requested=0, generated=0, answered=0, parsed=0, used=0)


def score(p: float, attribute: str | None = None, parts: Sequence[str] = (), **given: Any) -> Score:
    common: dict[str, Any] = {
        "task": "f:t", "condition": "audio", "dimension": "d", "role": "outcome", "metric": "n", "unit": "u",
        "value": 1.0, "coverage": NOTHING, "notes": (Note(NoteCode.MEAN_OF, {"attributes": list(parts)}),),
    }  # fmt: skip
    return Score(**(common | {"attribute": attribute, "p": p} | given))


def test_attributes_stand_below_the_mean_that_contains_them() -> None:
    whole = score(0.004, parts=("a", "b"))
    scores = [whole, score(0.01, "a"), score(0.002, "b"), score(0.03, "heard", role="echo"), score(math.nan, "c")]
    found = with_q(scores)
    # The mean and the echo are first tests: .004 · 2 and .03 · 1. Both are found, so the attributes cost nothing more
    # than Holm over two: .002 · 2 and .01 · 1, and no q is below the task's .008.
    assert [s.q for s in found[:4]] == pytest.approx([0.008, 0.01, 0.008, 0.03])
    assert math.isnan(found[4].q)


def test_breakdowns_of_one_kind_are_a_family_below_the_task() -> None:
    whole = score(0.01)
    speakers = [score(0.001, subset=f"speaker={n}") for n in range(4)]
    found = with_q([whole, *speakers, score(0.02, subset="unit=speaker")])
    # Four speakers: .001 · 4 is below the task's .01.
    assert [s.q for s in found] == pytest.approx([0.01] * 5 + [0.02])
    # A task that is not found has no breakdown that is.
    assert all(s.q >= 0.3 for s in with_q([replace(whole, p=0.3), *speakers]))


def test_a_kind_of_breakdown_is_corrected_over_its_parts() -> None:
    found = with_q([score(0.001), *[score(0.004, subset=f"speaker={n}") for n in range(4)], score(0.004, subset="w=1")])
    # Four speakers: .004 · 4; one w, by itself.
    assert [s.q for s in found] == pytest.approx([0.001, *[0.016] * 4, 0.004])


def test_attributes_stand_below_the_mean_of_their_own_condition() -> None:
    heard = [score(0.9, parts=("a",)), score(0.001, "a")]
    silent = [replace(one, condition="silence") for one in (score(0.01, parts=("a",)), score(0.004, "a"))]
    found = with_q([*heard, *silent])
    # Holm over the two means: .01 · 2 is found, .9 is not. Nothing below .9 is; below the other .004 · 2/1 is less than
    # its mean's .02.
    assert [s.q for s in found] == pytest.approx([0.9, 0.9, 0.02, 0.02])


def test_tasks_of_all_conditions_and_metrics_of_a_run_are_one_family() -> None:
    names = [score(0.01), score(0.02, metric="m"), score(0.03, task="f:u")]
    found = with_q([*names, score(0.5, task="f:t@silence", condition="silence")])
    # Holm: 4 x .01, 3 x .02, 2 x .03, never below the one before.
    assert [s.q for s in found] == pytest.approx([0.04, 0.06, 0.06, 0.5])
