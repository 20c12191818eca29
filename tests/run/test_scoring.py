"""Scores: a metric that gives nothing is refused, and q is over everything that is shown."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import Cli

from equivox.core.coverage import Coverage
from equivox.core.detectable import Detectable
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
        task=task.name, condition=task.condition, dimension=task.dimension, attribute=None, role="outcome", name="odd",
        unit="points", coverage=coverage, zero_means="nothing", p_cluster=0.5,
    )
    return RETURNED


ODD = Metric(name="odd", score=score_odd, measures=(Measure(name="odd", no_bias=0.0, not_compared="none"),))
ADVISORY = next(task for task in VIBE if task.name == "vibe_gender:advisory")
TASKS = [replace(ADVISORY, name="odd:advisory", card=__doc__, metric=ODD)]
'''


@pytest.mark.parametrize(
    ("returned", "told"),
    [("Scored([Score(**known, value=math.inf)])", "odd of odd:advisory has neither a number (odd is nan) nor a reason"),
     ("Scored([Score(**known)])", "neither a number (odd is nan) nor a reason; say in `undefined`"),
     ("[Score(**known, value=1.0)]", "odd returned list for odd:advisory; return `Scored([…])`"),
     ("None", "odd returned NoneType for odd:advisory"),
     ("Scored([])", "odd gave no score of odd:advisory as a whole; return one with `attribute=None`"),
     ('Scored([Score(**known | {"attribute": "hobby"}, value=1.0)])', "no score of odd:advisory as a whole"),
     ("Scored(None)", "odd returned Scored(scores=None, tables={}"),
     ("Scored([Score(**known, value=1.0)], None)", "for odd:advisory; return `Scored([…], {…})`"),
     ("Scored([Score(**known, value=1.0)], {1: [{'a': 1}]})", "odd calls a table 1; use letters, digits, _ and -"),
     ("Scored([known])", "odd gave dict among the scores of odd:advisory"),
     ("Scored([Score(**known, value='1')])", "wrong field: Score: `value`: input should be a valid number, got '1'"),
     ("Scored([Score(**known, value=True)])", "`value`: input should be a valid number, got True"),
     ("Scored([Score(**known, value=1.0, notes='one')])", "`notes`: input should be a valid tuple, got 'one'"),
     ("Scored([Score(**known | {'p_cluster': 1.7}, value=1.0)])", "has `p_cluster` 1.7: use a probability, or NaN"),
     ("Scored([Score(**known, value=1.0, p_least=-0.1)])", "has `p_least` -0.1: use a probability, or NaN"),
     ("Scored([Score(**known, value=1.0, undefined='few')])", "has the number 1.0 beside `undefined`, the reason why"),
     ("Scored([Score(**known, undefined=' ')])", "odd of odd:advisory has an empty text as `undefined`; say why"),
     (r"Scored([Score(**known, undefined='\ud800')])", "with a wrong field: 'utf-8' codec can't encode character"),
     ("Scored([Score(**known, value=Decimal(1))])", "with a wrong field: Object of type Decimal is not JSON"),
     ("Scored([Score(**known, value=1.0, ci_low=3.0, ci_high=2.0)])", "from `ci_low` 3.0 to `ci_high` 2.0: the lower"),
     ("Scored([Score(**known, value=1.0, n_clusters=-5)])", "odd of odd:advisory has -5 clusters"),
     ("Scored(2 * [Score(**known, value=1.0)])", "odd gave odd of odd:advisory twice; give it once"),
     ("Scored([Score(**known | {'name': 'even'}, value=1.0)])", "even of odd:advisory is none of its `measures`, odd;"),
     ("Scored([Score(**known, value=1.0, target=1.0)])", "has the `target` 1.0, and its `Measure` the `no_bias` 0.0;"),
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
    numbers = "Scored([Score(**known | {'p_cluster': None}, value=np.float32(0.5), n_clusters=np.int64(3))])"
    file.write_text(TASKS.replace("import math", "import numpy as np").replace("RETURNED", numbers))
    code, *_ = equivox("run", "simulated:random", file, "--data", "sample", "--limit", 4, "--output", tmp_path / "run")
    assert code == 0
    stored = json.loads((tmp_path / "run" / "scores.json").read_text())["scores"][0]
    assert (stored["value"], stored["n_clusters"], stored["p_cluster"]) == (0.5, 3, None)


def test_a_score_that_is_undefined_needs_no_target(tmp_path: Path, equivox: Cli) -> None:
    """A metric that gives its `target` beside a number alone was refused as soon as too few answers could be used."""
    file = tmp_path / "odd_tasks.py"
    file.write_text(
        TASKS.replace("no_bias=0.0", "no_bias=1.0").replace("RETURNED", "Scored([Score(**known, undefined='few')])")
    )
    run = ("run", "simulated:random", file, "--data", "sample", "--limit", 4, "--output", tmp_path / "run")
    assert "few" in equivox(*run)[1]
    assert json.loads((tmp_path / "run" / "scores.json").read_text())["scores"][0]["undefined"] == "few"


def test_a_table_that_is_an_iterator_is_stored(tmp_path: Path, equivox: Cli) -> None:
    file = tmp_path / "odd_tasks.py"
    file.write_text(TASKS.replace("RETURNED", "Scored([Score(**known, value=1.0)], {'x': iter([{'a': 7}])})"))
    code, *_ = equivox("run", "simulated:random", file, "--data", "sample", "--limit", 4, "--output", tmp_path / "run")
    assert code == 0
    assert read_records(tmp_path / "run", "odd:advisory", "x") == [{"a": 7}]


NOTHING = Coverage(requested=0, generated=0, answered=0, parsed=0, used=0)


def score(p: float, attribute: str | None = None, **given: Any) -> Score:
    common: dict[str, Any] = {
        "task": "f:t", "condition": "audio", "dimension": "d", "role": "outcome", "name": "n", "unit": "u",
        "zero_means": "z", "value": 1.0, "coverage": NOTHING,
    }  # fmt: skip
    return Score(**(common | {"attribute": attribute, "p_cluster": p} | given))


def test_attributes_stand_below_the_mean_that_contains_them() -> None:
    whole = score(0.004, parts=("a", "b"))
    scores = [whole, score(0.01, "a"), score(0.002, "b"), score(0.03, "heard", role="echo"), score(math.nan, "c")]
    found = with_q(scores)
    # The mean and the echo are first tests: .004 · 2 and .03 · 1. Both are found, so the attributes cost nothing more
    # than Holm over two: .002 · 2 and .01 · 1, and no q is below the task's .008.
    assert [s.q for s in found[:4]] == pytest.approx([0.008, 0.01, 0.008, 0.03])
    # Everything else is found, so that each would be one at .05.
    assert [s.level for s in found[:4]] == pytest.approx([0.05] * 4)
    assert math.isnan(found[4].q)


def test_breakdowns_of_one_kind_are_a_family_below_the_task() -> None:
    whole = score(0.01)
    speakers = [score(0.001, subset=f"speaker={n}") for n in range(4)]
    found = with_q([whole, *speakers, score(0.02, subset="unit=speaker")])
    # Four speakers: .001 · 4 is below the task's .01.
    assert [s.q for s in found] == pytest.approx([0.01] * 5 + [0.02])
    # A task that is not found has no breakdown that is.
    assert all(s.q >= 0.3 for s in with_q([replace(whole, p_cluster=0.3), *speakers]))


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
    names = [score(0.01), score(0.02, name="m"), score(0.03, task="f:u")]
    found = with_q([*names, score(0.5, task="f:t@silence", condition="silence")])
    # Holm: 4 x .01, 3 x .02, 2 x .03, never below the one before.
    assert [s.q for s in found] == pytest.approx([0.04, 0.06, 0.06, 0.5])
    assert [s.level for s in found] == pytest.approx([0.05 / 4, *[0.05 / 3] * 3])


def test_a_design_that_could_not_find_anything_says_so() -> None:
    # Three speakers of each of two groups: 20 permutations, no p below .1.
    few = score(0.1, p_least=0.1, cannot_tell="20 permutations: no p below 0.1")
    (found,) = with_q([few])
    assert not found.found and found.untold == "20 permutations: no p below 0.1"
    # A metric that gives the number alone.
    (found,) = with_q([replace(few, cannot_tell=None)])
    assert found.untold == "no p below 0.1"
    # Enough for one test, too few for forty.
    found = with_q([score(0.5, task=f"f:{n}", p_least=0.002) for n in range(40)])[0]
    assert found.untold == "no p below 0.002, and with all tests of the run no q below 0.08"
    # One that could: nothing is found, and that may be said where an interval, or the power, says what is ruled out.
    assert with_q([score(0.5, p_least=0.001, ci_low=30.0, ci_high=50.0)])[0].untold is None
    for half in ({}, {"ci_low": 30.0}, {"ci_high": 50.0}, {"ci_low": -math.inf, "ci_high": math.inf}):
        (found,) = with_q([score(0.5, p_least=0.001, **half)])
        assert found.untold == "how large a difference its test may miss is not known", half
    # 36 clusters would find the shift of 10: 9 × (20 / 10)².
    hidden = Detectable(at_5_percent=20.0, at_5_of_10000=30.0, answers=5.0, correlation=0.2)
    (found,) = with_q([replace(few, detectable=hidden, n_clusters=9, ci_high=60.0)])
    assert (found.untold, found.clusters_needed) == (few.cannot_tell, 36)
    (found,) = with_q([replace(few, cannot_tell=None, p_least=0.001, detectable=hidden, n_clusters=9, ci_high=60.0)])
    assert found.untold == "a shift of 10 could be missed in more than 20 of 100 such samples"
    assert found.clusters_needed == 36
    # A reason of another kind, such as too little power, is not told of a finding, nor of what has no test or no value.
    weak = "power below one half"
    assert with_q([score(0.5, p_least=0.001, cannot_tell=weak)])[0].untold == weak
    assert with_q([score(0.001, p_least=0.001, cannot_tell=weak)])[0].untold is None
    assert with_q([score(math.nan, cannot_tell=weak)])[0].untold is None
    assert with_q([score(0.5, p_least=0.5, undefined="nothing")])[0].untold is None


def test_q_without_a_known_smallest_p_says_nothing_of_the_design() -> None:
    (found,) = with_q([score(0.5, ci_low=30.0, ci_high=50.0)])
    assert math.isnan(found.q_least) and found.untold is None
