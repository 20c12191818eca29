"""Impact ratios of runs: even-handed, biased and failing models, and what is declared and refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Cli, csv_rows
from sample_runs import sample_runs

from equivox.api import import_responses, measure
from equivox.compare.impact import Impact, ImpactTable, impact, impacts
from equivox.compare.runs import ComparedRun, open_comparison
from equivox.core.attributes import Attribute
from equivox.core.errors import RequestError
from equivox.core.scores import ScoringOptions
from equivox.report.impact_files import NOT_AN_AUDIT, impact_tables, side_by_side_tables
from equivox.run.declarations import read_tasks
from equivox.statistics import impact_ratios
from equivox.tasks.registry import resolve_tasks

TASK = "vibe_gender:candidate"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs on the sample by models of known bias, one of which fails half of the time."""
    models = {
        "fair": "oracle",
        "biased": "biased",
        "planted": "planted,shift=0.6",
        "failing": "oracle,fail=0.5",
        "silent": "oracle,fail=1",
    }
    return sample_runs(tmp_path_factory.mktemp("impact"), models, TASK, 199)


def test_an_even_handed_model_has_ratios_of_one(runs: dict[str, Path]) -> None:
    for table in impact(runs["fair"]).tables:
        for one in table.ratios.groups[1:]:
            assert one.ratio == pytest.approx(1)
            assert one.low < 1 < one.high
        assert table.ratios.favoured == ("female", "male")


def test_a_biased_model_is_below_four_fifths(runs: dict[str, Path], equivox: Cli) -> None:
    for table in impact(runs["biased"]).tables:
        assert table.ratios.favoured == ("female",)
        assert table.ratios.groups[1].mark == "below"
    assert "most favoured: female; shown to be less favoured: male" in equivox.done("impact", runs["biased"])


def test_a_planted_shift_gives_the_shares_it_was_planted_with(runs: dict[str, Path]) -> None:
    # The women's answer of `planted` is the first option, given to men by chance alone: counted from the samples.
    (table,) = impact(
        runs["planted"], favourable={"competency": ["junior novice"], "cultural_fit": [], "compensation": []}
    ).tables
    female, male = table.ratios.groups
    assert (female.requested, male.requested) == (144, 144)
    assert male.ratio == pytest.approx(male.favourable / female.favourable)
    assert male.mark == "below"
    # The planted shift is 60: the shares of this value differ by 60 points, up to the noise of 144 answers.
    assert female.share - male.share == pytest.approx(60, abs=15)


def test_failures_are_unknown_and_never_read_as_fair(runs: dict[str, Path], equivox: Cli, tmp_path: Path) -> None:
    for name in ("failing", "silent"):
        code, out, err = equivox("impact", runs[name], "--csv", tmp_path / "impact.csv")
        assert code == 1, err
        assert "failed)" in out
        assert "are known" in out or "is known" in out
        rows = csv_rows(tmp_path / "impact.csv")
        assert rows and {row["ratio"] for row in rows} == {""}
        assert all(int(row["unknown"]) == int(row["unknown_failed"]) > 0 for row in rows)
        assert {row["mark"] for row in rows} == {""}
        assert "most favoured: " not in out and "largest share: " not in out


def test_crossed_columns_are_shown_alone_and_crossed(runs: dict[str, Path]) -> None:
    tables = impact(runs["fair"], by=("gender", "emotion")).tables[:3]
    assert [table.by for table in tables] == [("gender",), ("emotion",), ("gender", "emotion")]
    assert [one.group for one in tables[2].ratios.groups][:2] == ["female × HAP", "female × NEU"]
    for table in tables:
        assert sum(one.requested for one in table.ratios.groups) == 288
    # Every speaker has both emotions, so clusters lie in several groups.
    assert {one.n_clusters for one in tables[1].ratios.groups} == {24}


def test_the_output_begins_with_what_it_is_not(runs: dict[str, Path], equivox: Cli) -> None:
    out = equivox.done("impact", runs["planted"])
    assert out.splitlines()[:2] == list(NOT_AN_AUDIT)
    manifest = json.loads((runs["planted"] / "manifest.json").read_text())
    assert manifest["created"][:10] in out
    assert manifest["identity"]["corpora"]["crema_d"][:16] in out


def test_models_side_by_side_and_a_failing_one_never_reads_as_fair(
    runs: dict[str, Path], equivox: Cli, tmp_path: Path
) -> None:
    (table, *_) = side_by_side_tables(*impacts(open_comparison([runs["biased"], runs["failing"]]).runs))
    assert [str(cell) for cell in table.columns[:2]] == ["gender", "model"]
    lines = {(str(row[0]), str(row[1])): [str(cell) for cell in row[2:]] for row in table.rows}
    # Columns: responses, unknown, favourable, share, impact ratio, interval, with unknowns, four fifths.
    assert lines["male", "simulated:biased"][4] == "0.00" and lines["male", "simulated:biased"][7] == "below"
    assert lines["female", "simulated:biased"][4] == "1.00"
    for group in ("female", "male"):
        assert [lines[group, "simulated:oracle,fail=0.5"][place] for place in (4, 5, 7)] == ["—", "—", "—"]
    assert any(remark.startswith("simulated:oracle,fail=0.5: — ") for remark in table.remarks)
    assert "simulated:biased: most favoured: female; shown to be less favoured: male" in table.remarks
    assert set(NOT_AN_AUDIT) <= set(table.notes)
    folders = (runs["biased"], runs["planted"])
    code, out, err = equivox("compare", *folders, "--resamples", 99, "--tables", tmp_path / "csv")
    assert code == 0 and NOT_AN_AUDIT[0] in out, err
    rows = csv_rows(tmp_path / "csv" / "impact.csv")
    assert {row["model"] for row in rows} == {"simulated:biased", "simulated:planted,shift=0.6"}


def test_a_run_without_annotations_says_so_and_one_without_favourable_values_is_left_out(runs: dict[str, Path]) -> None:
    (run,) = open_comparison([runs["fair"]]).runs
    found, missing = impacts([replace(run, annotator="nobody")])
    assert found == [] and missing[0].startswith("simulated:oracle has no impact ratios: ")
    assert [str(remark)[:2] for table in side_by_side_tables(found, missing) for remark in table.remarks] == ["— "]
    assert impacts([replace(run, tasks=())]) == ([], [])


def test_wrong_requests_are_one_line(runs: dict[str, Path], equivox: Cli) -> None:
    for options, words in (
        (("--by", "race"), "the run of vibe_gender:candidate keeps gender"),
        (("--favourable", "competency"), "ATTRIBUTE=VALUE"),
        (("--favourable", "competency=genius"), "'genius', no option"),
        (("--favourable", "skill=high"), "the run has"),
        (("--favourable", "refusal=no"), "its role is refusal"),
    ):
        assert words in equivox.refused("impact", runs["fair"], *options)


def test_a_run_of_before_opens_and_says_that_nothing_is_favourable(
    runs: dict[str, Path], equivox: Cli, tmp_path: Path
) -> None:
    old = tmp_path / "old"
    (task,) = resolve_tasks(TASK)
    plain = replace(
        task,
        annotation=replace(
            task.annotation, attributes=tuple(replace(one, favourable=()) for one in task.annotation.attributes)
        ),
    )
    assert plain.fingerprint == task.fingerprint
    measure("simulated:oracle", plain, output=old, data="sample", limit=48)
    assert not any(one.favourable for one in read_tasks(old)[0].attributes)
    assert "--favourable ATTRIBUTE=VALUE" in equivox.refused("impact", old)
    equivox.done("impact", old, "--favourable", "compensation=premium top-tier package")


def test_what_a_group_has_unknown_moves_the_ratios_of_the_others(tmp_path: Path) -> None:
    """Women 3 of 6; men 5 of 5 and one unknown, so 5 or 6 of 6. The ratio of women is from 3/6 to (3/6)/(5/6)."""
    rows = [
        {"speaker": f"{gender}{i}", "gender": gender, "sentence": "IEO", "emotion": "neutral", "text": text}
        for gender, texts in (("female", ["Yoga."] * 3 + ["Chess."] * 3), ("male", ["Yoga."] * 5 + [""]))
        for i, text in enumerate(texts)
    ]
    options = ScoringOptions(n_resamples=99, min_count=1)
    import_responses(rows, "vibe_gender:advisory", model="m", output=tmp_path / "run", options=options)
    found = impact(tmp_path / "run", favourable={"hobby": ("yoga",)})
    assert [(one.least, one.most) for one in found.tables[0].ratios.groups] == [(0.5, pytest.approx(0.6)), (1.0, 1.0)]
    (shown,) = impact_tables(found)
    assert [(str(row[1]), str(row[7])) for row in shown.rows] == [("6", "0.50 to 0.60"), ("6", "1.00 to 1.00")]


def test_a_group_that_is_called_like_two_is_one_and_who_has_no_value_is_in_none(tmp_path: Path) -> None:
    towns = ("Ayr", "Bari", "")
    rows = [f"{region},{region}{n},{town}" for region in ("north × south", "west") for n, town in enumerate(towns)]
    (tmp_path / "people.csv").write_text("\n".join(["region,speaker,town", *rows]))
    (tmp_path / "clinic.yaml").write_text(
        "name: clinic\ntable: people.csv\ngroup: region\ncluster: speaker\nblocks: town\nquestions:\n"
        "  - name: referral\n    text: 'Somebody from {region} is ill. When?'\n    attributes:\n"
        "      - {name: urgency, asks: how soon, options: [today, later], favourable: [today]}\n"
    )
    measure("simulated:random", str(tmp_path / "clinic.yaml"), output=tmp_path / "run")
    for by, groups, n_without in (("region", ["north × south", "west"], 0), ("town", ["Ayr", "Bari"], 2)):
        found = impact(tmp_path / "run", by=(by,))
        assert [one.group for one in found.tables[0].ratios.groups] == groups
        assert found.tables[0].without_group == n_without
        told = [remark for remark in impact_tables(found)[0].remarks if "have no value" in remark]
        assert told == (["2 responses have no value of town"] if n_without else [])


@pytest.mark.parametrize(("unknown", "shown"), [(0, True), (80, False)])
def test_a_group_whose_unknown_answers_may_be_favourable_is_not_shown_to_be_less_favoured(
    unknown: int, shown: bool
) -> None:
    # Men 200 of 400; women 120 of 320: 0.75 (to 0.89). If 80 refused answers to women were favourable, 200 of 400.
    counts = {"men": (200, 200, 0), "women": (120, 200, unknown)}
    verdicts = [
        value for good, bad, none in counts.values() for value in [1.0] * good + [0.0] * bad + [math.nan] * none
    ]
    ratios = impact_ratios(verdicts, groups=[g for g, n in counts.items() for _ in range(sum(n))], clusters=None)
    assert ratios.groups[1].high < 1
    none = {group.group: {"failed": 0, "refused": group.unknown, "unstated": 0} for group in ratios.groups}
    table = ImpactTable(
        task="t", attribute="a", favourable=("yes",), by=("gender",), ratios=ratios, unknown=none, without_group=0
    )
    found = Impact(run=ComparedRun("m", Path(), "a", ()), data={}, tables=(table,))
    assert impact_tables(found)[0].remarks == [
        "most favoured: men; shown to be less favoured: women" if shown
        else "largest share: men; no other group is shown to be less favoured"
    ]  # fmt: skip


def test_a_task_file_declares_favourable_values(tmp_path: Path) -> None:
    (tmp_path / "clips.csv").write_text("path,text,speaker,gender\na.wav,x,s1,female\nb.wav,x,s2,male\n")
    lines = [
        "name: clinic", "table: clips.csv", "group: gender", "questions:", "  - name: referral", "    text: When?",
        "    attributes:", "      - {name: urgency, asks: how soon, options: [today, later], favourable: [VALUE]}",
    ]  # fmt: skip
    file = tmp_path / "clinic.yaml"
    file.write_text("\n".join(lines).replace("VALUE", "today"))
    (task,) = resolve_tasks(str(file))
    assert task.attribute("urgency").favourable == ("today",)
    file.write_text("\n".join(lines).replace("VALUE", "soon"))
    with pytest.raises(RequestError, match=r"clinic\.yaml.*'soon', no option; choose among today, later"):
        resolve_tasks(str(file))


def test_the_fingerprint_is_that_of_before() -> None:
    # Printed by the version before `favourable` existed.
    (task,) = resolve_tasks(TASK)
    assert task.fingerprint.startswith("9625690b5188c3a9")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"favourable": ("high",)}, "'high', no option; choose among a, b"),
        ({"favourable": ("a", "b")}, "names every option"),
        ({"favourable": "a"}, "a tuple of values"),
        ({"favourable": ("a", "a")}, "each once"),
        ({"favourable": ("a",), "role": "echo"}, "only outcomes"),
    ],
)
def test_a_wrong_declaration_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(RequestError, match=words):
        Attribute(**{"name": "pay", "asks": "the pay", "options": ("a", "b"), **given})  # type: ignore[arg-type]


def test_groups_that_share_the_largest_share_are_listed() -> None:
    values = {"a": [1.0] * 4, "b": [1.0] * 4, "c": [1.0] * 4, "d": [1.0, 1.0, 1.0, 0.0]}
    verdicts = [value for own in values.values() for value in own]
    ratios = impact_ratios(verdicts, groups=[group for group in values for _ in range(4)], clusters=None)
    unknown = {group: {"failed": 0, "refused": 0, "unstated": 0} for group in values}
    table = ImpactTable(
        task="t", attribute="a", favourable=("yes",), by=("gender",), ratios=ratios, unknown=unknown, without_group=0
    )
    (shown,) = impact_tables(Impact(run=ComparedRun("m", Path(), "a", ()), data={}, tables=(table,)))
    assert shown.remarks[0] == "largest share: a, b and c; no other group is shown to be less favoured"
