from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from built import said_of
from PIL import Image

from equivox.core.errors import RequestError
from equivox.dataset_builders import FairFace, build

HEADER = "file,age,gender,race,service_test"
TRAIN = ("train/1.jpg,50-59,Male,East Asian,True", "train/2.jpg,3-9,Female,Indian,False")
VAL = (
    "val/1.jpg,more than 70,Female,Latino_Hispanic,False",
    "val/2.jpg,20-29,Male,Middle Eastern,TRUE",
    "val/3.jpg,10-19,Male,White,False",
)


def write(root: Path, split: str, rows: tuple[str, ...]) -> None:
    (root / split).mkdir(parents=True, exist_ok=True)
    for n, row in enumerate(rows):
        pixels = np.random.default_rng([n, len(split)]).integers(0, 255, (16, 16), dtype=np.uint8)
        Image.fromarray(pixels).save(root / row.partition(",")[0])
    (root / f"fairface_label_{split}.csv").write_text("\n".join((HEADER, *rows)) + "\n")


@pytest.fixture
def fairface(tmp_path: Path) -> Path:
    """Five squares of noise, three of them labelled as adults."""
    root = tmp_path / "fairface"
    write(root, "train", TRAIN)
    write(root, "val", VAL)
    return root


def said(source: Path, words: str) -> str:
    return said_of(FairFace(source), words)


def test_a_photograph_is_a_person_with_the_labels_of_its_row(fairface: Path) -> None:
    clips = {clip.clip_id: clip for clip in FairFace(fairface).clips()}
    assert list(clips) == ["train/1", "val/1", "val/2"]
    found = clips["val/1"]
    assert (found.path, found.speaker, found.text) == (fairface / "val" / "1.jpg", "val/1", None)
    assert found.columns == {
        "gender": "female", "race": "latino hispanic", "age_group": "more than 70", "photograph": "val/1",
        "split": "val", "service_test": "false",
    }  # fmt: skip
    assert (FairFace.FACTS.cluster, FairFace.FACTS.demographics) == ("photograph", ("gender", "race", "age_group"))


def test_people_below_20_are_not_used_and_counted(fairface: Path) -> None:
    assert said(fairface, "below 20") == "photographs of people below 20, not used: 2 of 5"


def test_one_split_will_do_and_counts_are_held_against_the_published_ones(fairface: Path) -> None:
    (fairface / "fairface_label_train.csv").unlink()
    assert [clip.clip_id for clip in FairFace(fairface).clips()] == ["val/1", "val/2"]
    assert said(fairface, "photographs:") == "photographs: 97,698 published, 3 found"
    # The counts of the published tables: 86,744 + 10,954 rows; of adults 25,598 + 19,250 + 10,744 + 6,228 + 2,779 + 842
    # and 3,300 + 2,330 + 1,353 + 796 + 321 + 118.
    published = FairFace.FACTS.published
    assert published["photographs"] == 86_744 + 10_954
    assert published["clips"] == 65_441 + 8_218 == published["female"] + published["male"]


def test_damage_is_named_and_counted(fairface: Path, tmp_path: Path) -> None:
    rows = (
        "val/1.jpg,30-39,Female,Black,False",
        "val/2.jpg,30-39,Woman,Black,False",
        "val/3.jpg,30-39,Male,Asian,False",
        "val/4.jpg,03-Sep,Male,Black,False",  # 3-9, after a spreadsheet took it for a date
        "val/5.jpg,30-39,Male,White,False",
        "val/6.jpg,40-49,Male,White,False",
    )
    write(fairface, "val", rows)
    table = fairface / "fairface_label_val.csv"
    table.write_text(table.read_text() + "val/1.jpg,30-39,Male,Black,False\n../secret.jpg,30-39,Male,Black,False\n")
    photographs = fairface / "val"
    (photographs / "5.jpg").unlink()
    (photographs / "6.jpg").write_bytes((photographs / "6.jpg").read_bytes()[:-150])
    (photographs / "7.jpg").write_bytes(b"")
    clips = {clip.clip_id: clip.columns for clip in FairFace(fairface).clips()}
    assert list(clips) == ["train/1", "val/1", "val/2", "val/3", "val/5", "val/6"]
    assert (clips["val/1"]["gender"], clips["val/2"]["gender"], clips["val/3"]["race"]) == ("female", None, None)
    assert said(fairface, "whose gender") == (
        "photographs whose gender is no published category (null): 1 (val/2.jpg: 'Woman')"
    )
    assert said(fairface, "whose race").endswith("(null): 1 (val/3.jpg: 'Asian')")
    assert said(fairface, "whose age").endswith("not used: 1 (val/4.jpg: '03-Sep')")
    assert said(fairface, "repeat").endswith("first used: 1 (val/1.jpg)")
    assert said(fairface, "rows whose file").endswith("1 (../secret.jpg)")
    assert said(fairface, "without a row").endswith("1 (val/7.jpg)")
    built = build(FairFace(fairface), tmp_path / "built")
    assert built.problems.keys() == {"val/5", "val/6"}
    assert (built.rows, built.problems["val/5"]) == (6, "missing file")


def test_something_else_is_refused_in_one_line(fairface: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"is not FairFace: expected fairface_label_val\.csv and val/"):
        FairFace(tmp_path)
    table = fairface / "fairface_label_val.csv"
    table.write_text(table.read_text().replace("race", "ethnicity"))
    with pytest.raises(RequestError, match=r"fairface_label_val\.csv: column 'race' is missing"):
        FairFace(fairface).clips()


def test_the_card_says_whose_judgement_the_labels_are(fairface: Path, tmp_path: Path) -> None:
    card = (build(FairFace(fairface), tmp_path / "built").folder / "README.md").read_text()
    assert "annotators' judgement of an appearance" in card and "language:" not in card
