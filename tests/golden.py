"""Compares every number of fixed runs with the recorded ones, or records them.

    python tests/golden.py             compare; exit code 1 if a number differs
    python tests/golden.py --update    print the differences, then record

The runs: the four models of the demo, the four papers in miniature, a table whose rows are given to both groups and
whose outcome is a number, an import, a comparison of two runs, and the papers' published data where
`EQUIVOX_REFERENCE_DATA` names them. The record is `tests/golden.parquet`: a row per number.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from equivox.core.scores import Score

TESTS = Path(__file__).parent
RECORD = TESTS / "golden.parquet"
KEYS = ["run", "task", "condition", "dimension", "metric", "attribute", "subset", "field"]
PUBLISHED = "published data"
"""The first key of the numbers that are computed from the papers' published data."""
TOLERANCE = 1e-9
"""Relative: libraries for linear algebra may round the last digits in another way."""
SHOWN = 200
"""Differences that are printed one by one."""
WORDS = 40
"""The characters of a text that can identify a row; longer ones are sentences, answers and keys."""
CASES: dict[str, Callable[[Path], Iterator[pd.DataFrame]]] = {}
"""The functions that compute the numbers, by name."""


def case(function: Callable[[Path], Iterator[pd.DataFrame]]) -> Callable[[Path], Iterator[pd.DataFrame]]:
    """Register a function that computes numbers in an empty folder."""
    CASES[function.__name__] = function
    return function


def run_command(*words: object) -> None:
    """Run a command without its output; exit code 1, a task without a score, is allowed."""
    from equivox import cli

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:
        code = cli.run([str(word) for word in words])
    assert code in {0, 1}, err.getvalue()


def melt(table: pd.DataFrame, **keys: str) -> pd.DataFrame:
    """Return the numbers of a table in long form; `keys` are those of all rows, columns named like a key fill it.

    Other columns of short texts identify a row together, as its `subset`. A column without a number is left out.
    """
    numbers = [name for name in table if name not in KEYS and pd.api.types.is_numeric_dtype(table[name])]
    numbers = [name for name in numbers if table[name].notna().any()]
    texts = [name for name in table if name not in KEYS and pd.api.types.is_string_dtype(table[name])]
    frame = table[[name for name in KEYS if name in table]].fillna("").astype(str).assign(**keys)
    short = [name for name in texts if table[name].astype(str).str.len().max() <= WORDS]
    if "subset" not in frame:
        frame["subset"] = ["|".join(row) for row in table[short].fillna("").astype(str).values.tolist()]
    frame = frame.reindex(columns=KEYS[:-1], fill_value="").astype(str)
    repeats = frame.groupby(KEYS[:-1]).cumcount()
    frame.loc[repeats > 0, "subset"] += " #" + repeats[repeats > 0].astype(str)
    frame[numbers] = table[numbers].astype(float)
    return frame.melt(id_vars=KEYS[:-1], value_vars=numbers, var_name="field", value_name="number")


def melt_scores(given: Sequence[Score], run: str) -> pd.DataFrame:
    """Return the numbers of scores in long form."""
    rows = []
    for score in given:
        shift = score.largest_shift
        shares = {} if shift is None else {"largest_high": shift.high_share, "largest_low": shift.low_share}
        design = {"null_mean": score.null_mean, "sd": score.sd, "rare_share": score.rare_share}
        rows.append(score.as_row() | shares | design)
    scores = pd.DataFrame(rows)
    texts = [name for name in scores if name not in KEYS and pd.api.types.is_string_dtype(scores[name])]
    return melt(scores.drop(columns=texts), run=run)


def read_run(folder: Path, name: str) -> Iterator[pd.DataFrame]:
    """Yield the numbers of the scores and of the tables of a run."""
    import equivox

    yield melt_scores(equivox.open_run(folder).scores, name)
    for file in sorted(folder.glob("tables/**/*.parquet")):
        yield melt(pd.read_parquet(file), run=name, task=file.parent.name, metric=f"table {file.stem}")


def read_tables(folder: Path, name: str) -> Iterator[pd.DataFrame]:
    """Yield the numbers of the CSV files of a folder."""
    for file in sorted(folder.rglob("*.csv")):
        yield melt(pd.read_csv(file), run=name, metric=f"table {file.stem}")


@case
def demo(folder: Path) -> Iterator[pd.DataFrame]:
    """Yield the numbers of the demo, and of a comparison of two of its runs."""
    run_command("demo", "--output", folder)
    runs = sorted(file.parent for file in folder.rglob("scores.json"))
    for run in runs:
        yield from read_run(run, f"demo {run.name}")
    run_command("compare", *runs[:2], "--resamples", "999", "--tables", folder / "compare")
    yield from read_tables(folder / "compare", "compare")


@case
def published_responses(folder: Path) -> Iterator[pd.DataFrame]:
    """Yield the scores and tables of the 2,880 released responses of GENRES."""
    sys.path.insert(0, str(TESTS / "metrics/genres"))
    from test_genres_published_responses import whole_family

    for model in ("qwen2v5VL3b", "janus"):
        result = whole_family(Path(os.environ["EQUIVOX_REFERENCE_DATA"]), model)
        yield melt_scores(result.scores, f"{PUBLISHED} {model}")
        for name, table in result.tables.items():
            yield melt(pd.DataFrame(table), run=f"{PUBLISHED} {model}", metric=f"table {name}")


def reproduce(paper: str, folder: Path) -> Iterator[pd.DataFrame]:
    """Yield the numbers of the runs and of the tables of a paper in miniature."""
    run_command(
        "reproduce", paper, "--data", "sample", "--limit", "24", "--models", "simulated:biased", "--annotator", "rules",
        "--scoring", "n_resamples=199,merge=none", "--output", folder / "runs", "--tables", folder / "tables",
    )  # fmt: skip
    for file in sorted(folder.glob("runs/**/scores.json")):
        yield from read_run(file.parent, f"{paper} {file.parent.relative_to(folder / 'runs')}")
    yield from read_tables(folder / "tables", f"{paper} tables")


@case
def vibe(folder: Path) -> Iterator[pd.DataFrame]:
    """Yield the numbers of VIBE in miniature."""
    yield from reproduce("vibe", folder)


@case
def spoken_stereoset(folder: Path) -> Iterator[pd.DataFrame]:
    """Yield the numbers of Spoken StereoSet in miniature."""
    yield from reproduce("spoken_stereoset", folder)


@case
def genres(folder: Path) -> Iterator[pd.DataFrame]:
    """Yield the numbers of GENRES in miniature."""
    yield from reproduce("genres", folder)


@case
def badf(folder: Path) -> Iterator[pd.DataFrame]:
    """Yield the numbers of BADF in miniature."""
    yield from reproduce("badf", folder)


@case
def crossed(folder: Path) -> Iterator[pd.DataFrame]:
    """Yield the numbers of 40 texts with swapped names and of a salary, measured and imported."""
    import equivox

    texts = [f"{{name}} has {1 + n % 9} years of experience and {1 + n % 3} references." for n in range(40)]
    pd.DataFrame({"id": range(40), "application": texts}).to_csv(folder / "applications.csv", index=False)
    task = {
        "name": "applications", "table": "applications.csv", "group": "gender",
        "swap": {"name": {"female": ["Anna", "Maria", "Olga"], "male": ["Jonas", "Peter", "Emil"]}},
        "questions": [{
            "name": "salary", "text": "{application} Which yearly salary in EUR should we offer {name}?",
            "attributes": [{"name": "salary", "asks": "salary", "number": {"unit": "EUR", "low": 0, "high": 200_000}}],
        }],
        "card": "Made up for a test.",
    }  # fmt: skip
    (folder / "applications.yaml").write_text(json.dumps(task))
    tasks, options = str(folder / "applications.yaml"), "n_resamples=999"
    result = equivox.measure("simulated:planted,shift=0.3", tasks, output=folder / "run", options=options)
    yield from read_run(folder / "run", "crossed")
    answers = result.to_pandas("responses")[["sample_id", "text"]].rename(columns={"text": "response"})
    answers.loc[::9, "response"] = ""
    equivox.import_responses(answers, tasks, model="elsewhere", output=folder / "imported", options=options)
    yield from read_run(folder / "imported", "import")


@case
def published_tables(folder: Path) -> Iterator[pd.DataFrame]:
    """Yield what follows from the published tables and counts of the papers."""
    from equivox.metrics.badf.associations import summary
    from equivox.metrics.badf.contingency import association_test
    from equivox.metrics.genres.cohort import published_cohorts, total_bias
    from equivox.metrics.spoken_stereoset import Tally
    from equivox.statistics import correlations

    data = Path(os.environ["EQUIVOX_REFERENCE_DATA"])
    rows: list[dict[str, object]] = []

    def add(paper: str, table: str, row: str, **numbers: float) -> None:
        rows.append({"task": paper, "metric": table, "subset": row, **numbers})

    vibe = pd.read_csv(data / "vibe/vibe_table1.csv").query("dimension == 'gender'")
    for pair in correlations({task: list(vibe[task]) for task in ("Adv", "Cast", "Shop", "Story", "Cand")}):
        add("vibe", "figure_3", f"{pair.first} {pair.second}", r=pair.r)
    for row in pd.read_csv(data / "spoken_stereoset/table3_counts.csv").itertuples():
        tally = Tally(
            stereotypical=row.stereotypical, anti_stereotypical=row.anti, irrelevant=row.irrelevant, other=row.others
        )  # fmt: skip
        shares = {name: getattr(tally, name) for name in ("slifs", "slms", "slbs", "parity_deviation")}
        add("spoken_stereoset", "table_3", f"{row.domain} {row.model}", **shares)
    for cohort, models in published_cohorts().items():
        for model, total in total_bias(models).total.items():
            add("genres", "table_2", f"{cohort} {model}", tbs=total)
    for row in pd.read_csv(data / "badf/fixture_multi_counts_60.csv").itertuples():
        counts = [[count, row.n_docs - count] for count in json.loads(row.doc_freq_by_identity)]
        test = association_test(counts, n_resamples=1, rng=np.random.default_rng(1))
        add("badf", "fixture_multi", str(row.Index), p=test.p)
    for file in sorted((data / "badf/associations").glob("*.csv")):
        listed = pd.read_csv(file)
        for identity, kept in listed[listed["Prompt Response"] == "NO"].groupby("Demographic Identity"):
            n, score, p = summary(list(kept["Score"]), list(kept["P-Value"]))
            add("badf", "table_14", f"{file.stem} {identity}", associations=n, score=score, p=p)
    yield melt(pd.DataFrame(rows), run=PUBLISHED)


def compute(name: str) -> pd.DataFrame:
    """Return the numbers of a case, sorted by their keys, each of which stands once."""
    from equivox.core.lazy import on_one_core

    with tempfile.TemporaryDirectory() as folder, on_one_core(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ["EQUIVOX_CACHE"] = f"{folder}/cache"
        (Path(folder) / "work").mkdir()
        table = pd.concat(CASES[name](Path(folder) / "work"), ignore_index=True)
    repeated = table[table.duplicated(KEYS)]
    assert repeated.empty, f"{name}: numbers that share a key: {repeated.head().to_dict('records')}"
    return table.dropna(subset="number")


def compare(recorded: pd.DataFrame, now: pd.DataFrame) -> list[str]:
    """Return a line per changed number with both values, and a line per run and field that went or came."""
    both = recorded.merge(now, on=KEYS, how="outer", suffixes=("_was", "_is"), indicator=True)
    shared = both[both["_merge"] == "both"]
    changed = shared[~np.isclose(shared["number_was"], shared["number_is"], rtol=TOLERANCE, atol=1e-12)]
    lines = [
        f"changed  {' · '.join(row[key] for key in KEYS if row[key])}: {row['number_was']!r} → {row['number_is']!r}"
        for row in changed.head(SHOWN).to_dict("records")
    ]
    for side, word in (("left_only", "removed"), ("right_only", "new")):
        counts = both[both["_merge"] == side].groupby(["run", "metric", "field"], sort=True).size()
        lines += [f"{word}  {' · '.join(keys)}: {count} numbers" for keys, count in counts.items()]
    counts = f"{len(changed):,} changed, {(both['_merge'] == 'left_only').sum():,} removed"
    return [*lines, f"{counts}, {(both['_merge'] == 'right_only').sum():,} new, {len(shared):,} compared"]


def main(update: bool) -> int:
    """Compare, and record if `update`; return 1 if a number differs."""
    data = os.environ.get("EQUIVOX_REFERENCE_DATA", "")
    names = [name for name in CASES if not name.startswith("published") or (data and Path(data).is_dir())]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        now = pd.concat(pool.map(compute, names), ignore_index=True)
    recorded = pd.read_parquet(RECORD) if RECORD.exists() else now.head(0)
    if len(names) < len(CASES):
        sys.stdout.write("skipped: the published data; EQUIVOX_REFERENCE_DATA names no folder that holds them\n")
        recorded = recorded[~recorded["run"].str.startswith(PUBLISHED)]
    lines = compare(recorded, now)
    sys.stdout.write("\n".join(lines) + "\n")
    if update:
        now.sort_values(KEYS).to_parquet(RECORD, compression="zstd", index=False)
    return 0 if update or len(lines) == 1 else 1


if __name__ == "__main__":
    sys.exit(main("--update" in sys.argv[1:]))
