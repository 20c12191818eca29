"""The evidence pack: the run's own numbers with their files, what nobody stated, and signatures that name a change."""

from __future__ import annotations

import base64
import json
import math
import re
import shutil
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from commands import Cli, csv_rows, write_rows
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sample_runs import sample_run

from equivox.core.scores import ScoringOptions
from equivox.run.pipeline import rescore
from equivox.run.scoring import read_scores
from equivox.run.verifying import Verification

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PARTS = ("hazard", "threshold", "mitigation", "review_trigger", "why_these_data", "how_data_were_made", "responsible")
CLAIMS = re.compile(r"compl(y|ie|ian)|conform", re.IGNORECASE)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return measured(tmp_path_factory.mktemp("packed") / "run", 0)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return measured(tmp_path_factory.mktemp("packed") / "other", 1)


def measured(folder: Path, seed: int) -> Path:
    return sample_run(folder, "planted,shift=0.6", "vibe_gender:candidate", 199, limit=48, seed=seed)


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """A private and a public key as files."""
    return write_keys(tmp_path, KEY)


def write_keys(folder: Path, key: Ed25519PrivateKey, name: str = "key") -> tuple[Path, Path]:
    private, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    pem = serialization.Encoding.PEM
    private.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return private, public


def packed(equivox: Cli, folder: Path, *arguments: object) -> tuple[dict[str, Any], str]:
    told = equivox.done("dossier", *arguments, "--output", folder).splitlines()
    assert [str((folder / name).resolve()) for name in ("index.html", "dossier.json")] == told[:2]
    return json.loads((folder / "dossier.json").read_text()), (folder / "index.html").read_text()


def statements(folder: Path, text: str) -> Path:
    path = folder / "statements.yaml"
    path.write_text(text)
    return path


def test_scores_are_those_of_the_run_with_their_places(run: Path, equivox: Cli, tmp_path: Path) -> None:
    record, page = packed(equivox, tmp_path / "pack", run)
    (own,) = record["runs"]
    stored = json.loads((run / "scores.json").read_text())["scores"]
    assert len(own["scores"]) == len([one for one in stored if not one["subset"]]) > 4
    for one in own["scores"]:
        place, field = re.fullmatch(r"scores\[(\d+)\]\.(\w+)", one["from"]["key"]).groups()  # type: ignore[union-attr]
        there = stored[int(place)]
        assert one["value"] == there[field]
        assert one["interval"] == [there["ci_low"], there["ci_high"]]
        assert (one["task"], one["attribute"], one["metric"]) == (there["task"], there["attribute"], there["name"])
        assert one["n"] == there["coverage"]["used"]
        for source in (one["from"], *one["recomputed_from"]):
            assert source["sha256"] == sha256((run / source["file"]).read_bytes()).hexdigest()
        assert [source["file"].partition("/")[0] for source in one["recomputed_from"]] == ["annotations"]
    assert own["coverage"][0]["requested"] == 48
    assert own["hashes"]["manifest.json"] == sha256((run / "manifest.json").read_bytes()).hexdigest()
    headline = next(one for one in own["scores"] if one["attribute"] is None)
    assert f"{headline['value']:.2f}" in page
    assert "vibe_gender:candidate, refusal: no response declines" in page


def test_impact_ratios_by_hand_from_the_values_of_the_answers(run: Path, equivox: Cli, tmp_path: Path) -> None:
    from equivox.run.plan import read_plan
    from equivox.run.store import stored_annotations

    record, _ = packed(equivox, tmp_path / "pack", run)
    group_of = {row["key"]: row["group"] for row in read_plan(run).to_pylist()}
    said: dict[str, list[str]] = {"female": [], "male": []}
    for annotation in stored_annotations(run, "rules").values():
        values = [one["value"] for one in annotation["values"] if one["attribute"] == "competency"]
        said[group_of[annotation["response_key"]]] += values
    shares = {group: 100 * values.count("exceptional expert") / len(values) for group, values in said.items()}
    rows = [row for row in record["runs"][0]["impact"]["rows"] if row["attribute"] == "competency"]
    assert {row["group"]: row["share"] for row in rows} == pytest.approx(shares)
    best = max(shares.values())
    assert {row["group"]: row["ratio"] for row in rows} == pytest.approx({g: s / best for g, s in shares.items()})
    assert all(row["from"]["file"] == "annotations/rules/samples/vibe_gender-candidate.parquet" for row in rows)


def test_what_nobody_stated_is_not_stated(run: Path, equivox: Cli, tmp_path: Path) -> None:
    record, page = packed(equivox, tmp_path / "pack", run)
    assert record["stated"] == dict.fromkeys(PARTS, "not stated")
    assert record["runs"][0]["validity"]["calibration"] == "not stated"
    assert page.count("not stated") >= len(PARTS) + 2
    assert record["runs"][0]["limits"] == []
    partly, _ = packed(
        equivox, tmp_path / "more", run, "--statements", statements(tmp_path, "hazard: Unequal rating.\n")
    )
    assert partly["stated"] == {**record["stated"], "hazard": "Unequal rating."}


def test_nothing_judges_by_a_law(run: Path, equivox: Cli, tmp_path: Path) -> None:
    record, page = packed(equivox, tmp_path / "pack", run)
    assert not CLAIMS.search(page)
    assert not CLAIMS.search(json.dumps(record))
    assert "prEN 18283, which is a draft" in page


@pytest.mark.parametrize("claim", ["It complies with LL144.", "Fully COMPLIANT", "in conformity with prEN 18283"])
def test_statements_that_judge_by_a_law_are_refused(claim: str, run: Path, equivox: Cli, tmp_path: Path) -> None:
    file = statements(tmp_path, f"mitigation: {claim!r}\n")
    assert "`mitigation`" in equivox.refused("dossier", run, "--output", tmp_path / "pack", "--statements", file)


def test_texts_of_others_are_not_executed(run: Path, equivox: Cli, tmp_path: Path) -> None:
    file = statements(tmp_path, "hazard: '<script>alert(1)</script><img src=x onerror=alert(2)>\"\u202e'\n")
    _, page = packed(equivox, tmp_path / "pack", run, "--statements", file)
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\u202e" not in page
    assert "default-src 'none'; style-src 'sha256-" in page


def test_stated_limits_are_held_as_the_gate_holds_them(run: Path, equivox: Cli, tmp_path: Path) -> None:
    (score,) = [one for one in read_scores(run) if one.is_whole]
    outcomes = {}
    for limit in (math.floor(score.ci_low) - 1, round(score.estimate, 1), 100):
        file = statements(tmp_path, f"limits: {{nTVD: {limit}}}\n")
        record, _ = packed(equivox, tmp_path / f"pack{limit}", run, "--statements", file)
        (held,) = record["runs"][0]["limits"]
        assert (held["value"], held["interval"]) == (score.estimate, [score.ci_low, score.ci_high])
        outcomes[limit] = held["outcome"]
    assert list(outcomes.values()) == ["beyond the limit", "this design cannot tell", "within the limit"]


def test_lost_answers_stand_on_the_page_and_are_held_against_limits(equivox: Cli, tmp_path: Path) -> None:
    """A model that is even-handed in what it says and refuses women alone was "not shown" on the page, no more."""
    run = sample_run(tmp_path / "run", "oracle,refusal_gap=0.4", "vibe_gender:candidate")
    rescore(run, options=ScoringOptions(n_resamples=199, min_coverage=0.2))
    file = statements(tmp_path, "limits: {nTVD: 10}\n")
    record, page = packed(equivox, tmp_path / "pack", run, "--statements", file)
    (refusals,) = (one for one in read_scores(run) if one.attribute == "refusal")
    assert refusals.mover is not None and refusals.found
    (own,) = (one for one in record["runs"][0]["scores"] if one["role"] == "refusal")
    assert own["lost"] == f"female {refusals.mover.high_share:.0f} % against male 0 %"
    (whole,) = (one for one in record["runs"][0]["scores"] if one["attribute"] is None)
    (missing,) = (note for note in whole["notes"] if "of the answers of group female are missing" in note)
    assert f"vibe_gender:candidate, nTVD: {missing}" in page
    cells = re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", page)
    place = cells.index(own["lost"])
    assert cells[place - 2 : place] == ["refusal", "found"]
    assert "scored with min_coverage 0.2 (as declared: 0.8)" in page
    held = {one["metric"]: one for one in record["runs"][0]["limits"]}
    assert (held["refusal"]["value"], held["refusal"]["outcome"]) == (refusals.estimate, "beyond the limit")
    assert held["refusal"]["from"]["key"] == f"scores[{read_scores(run).index(refusals)}].distance from no bias"


def test_labels_by_people_stand_with_their_file(run: Path, equivox: Cli, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "run")
    equivox.done("audit", "label", copy, "--n", 8, "--no-media", "--output", tmp_path / "sheet")
    rows = csv_rows(tmp_path / "sheet" / "sheet.csv")
    labels = write_rows(tmp_path / "person.csv", [row | {"label": "unstated"} for row in rows])
    equivox.done("audit", "score", tmp_path / "sheet", labels)
    record, page = packed(equivox, tmp_path / "pack", copy)
    labels = record["runs"][0]["validity"]["labels"]
    # The annotator always says something, the person never does.
    agreement = [one for one in labels if one["what"] == "agreement"]
    assert agreement
    for one in agreement:
        assert (one["value"], one["people"], one["from"]["file"]) == (0.0, 1, "audit/answers/audit.json")
    corrected = [one for one in labels if one["what"] == "corrected"]
    assert corrected
    assert all(one["value"] is not None or one["undefined"] for one in corrected)
    assert "labels by people: not stated" not in page


def test_two_runs_make_one_pack(run: Path, other: Path, equivox: Cli, tmp_path: Path) -> None:
    record, _ = packed(equivox, tmp_path / "pack", run, other)
    assert [one["run"] for one in record["runs"]] == ["run", "other"]
    again = shutil.copytree(other, tmp_path / "elsewhere" / "run")
    assert "rename one" in equivox.refused("dossier", run, again, "--output", tmp_path / "twice")


def test_wrong_requests_are_one_line_and_leave_nothing(run: Path, equivox: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    unknown = statements(tmp_path, "hazards: x\n")
    limits = tmp_path / "limits.yaml"
    limits.write_text("limits: {nTVDD: 3}\n")
    wrong: list[tuple[list[object], str]] = [
        (["--statements", unknown], "hazards"),
        (["--statements", tmp_path / "none.yaml"], "cannot read"),
        (["--statements", tmp_path / "file"], ".yaml"),
        (["--statements", limits], "nTVD"),
        (["--sign", tmp_path / "none.pem"], "`sign`"),
        (["--sign", tmp_path / "file"], "openssl genpkey"),
    ]
    for options, said in wrong:
        assert said in equivox.refused("dossier", run, "--output", tmp_path / "pack", *options)
    for place, said in ((tmp_path / "file", "is a file"), (run / "pack", "which would count as changed")):
        assert said in equivox.refused("dossier", run, "--output", place)


def test_a_run_whose_numbers_are_not_its_own_is_refused(run: Path, equivox: Cli, tmp_path: Path) -> None:
    from equivox.core.files import read_document, write_document
    from equivox.run.manifest import state_hashes

    copy = shutil.copytree(run, tmp_path / "run")
    document = read_document(copy / "scores.json")
    document["scores"][0]["estimate"] = 0.5
    write_document(copy / "scores.json", document)
    state_hashes(copy)
    assert "is not used" in equivox.refused("dossier", copy, "--output", tmp_path / "pack")


def verified(equivox: Cli, run: Path, public: Path, statement: Path) -> tuple[int, str]:
    code, out, error = equivox("verify", run, "--key", public, "--statement", statement, "--quiet")
    return code, out + error


def test_a_signed_statement_is_an_in_toto_statement_about_the_manifest(
    run: Path, equivox: Cli, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    packed(equivox, tmp_path / "pack", run, "--sign", keys[0])
    made = json.loads((tmp_path / "pack" / "run.dsse.json").read_text())
    payload = base64.b64decode(made["payload"])
    said = b"DSSEv1 28 application/vnd.in-toto+json %d %b" % (len(payload), payload)
    KEY.public_key().verify(base64.b64decode(made["signatures"][0]["sig"]), said)
    statement = json.loads(payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    digests = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
    assert digests == {
        "manifest.json": sha256((run / "manifest.json").read_bytes()).hexdigest(),
        **{n: sha256((tmp_path / "pack" / n).read_bytes()).hexdigest() for n in ("index.html", "dossier.json")},
    }
    assert statement["predicate"]["outcome"] == "verified"
    assert statement["predicate"]["signer"] == made["signatures"][0]["keyid"]
    code, out = verified(equivox, run, keys[1], tmp_path / "pack" / "run.dsse.json")
    assert code == 0, out
    assert out.startswith("verified: ")
    assert "was signed at" in out


def test_each_change_is_named(run: Path, other: Path, equivox: Cli, tmp_path: Path, keys: tuple[Path, Path]) -> None:
    pack = tmp_path / "pack"
    packed(equivox, pack, run, other, "--sign", keys[0])
    statement = pack / "run.dsse.json"
    _, strange = write_keys(tmp_path, Ed25519PrivateKey.generate(), "strange")
    code, out = verified(equivox, run, strange, statement)
    assert code == 1
    assert "differs" in out
    assert "another key signed it" in out
    code, out = verified(equivox, run, keys[1], pack / "other.dsse.json")
    assert code == 1
    assert "is about another run" in out

    made = json.loads(statement.read_text())
    payload = bytearray(base64.b64decode(made["payload"]))
    payload[len(payload) // 2] ^= 1
    spoilt = pack / "spoilt.dsse.json"
    spoilt.write_text(json.dumps(made | {"payload": base64.b64encode(payload).decode()}))
    code, out = verified(equivox, run, keys[1], spoilt)
    assert code == 1
    assert "changed after it was signed" in out

    copy = shutil.copytree(run, tmp_path / "copy")
    manifest = (copy / "manifest.json").read_text()
    (copy / "manifest.json").write_text(manifest.replace('"created"', ' "created"'))
    code, out = verified(equivox, copy, keys[1], statement)
    assert code == 1
    assert "or this one changed" in out

    (pack / "dossier.json").write_text((pack / "dossier.json").read_text() + "\n")
    (pack / "index.html").unlink()
    code, out = verified(equivox, run, keys[1], statement)
    assert code == 1
    assert "dossier.json is not the file that was signed" in out
    assert "index.html was signed too, but is not beside" in out


def test_wrong_keys_and_files_of_verify_are_one_line(
    run: Path, equivox: Cli, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    for options, said in (
        (["--key", keys[1]], "belong together"),
        (["--statement", keys[1]], "belong together"),
        (["--key", keys[1], "--statement", tmp_path / "none"], "`statement`"),
        (["--key", tmp_path / "none", "--statement", keys[1]], "`key`"),
        (["--key", keys[0], "--statement", keys[1]], "openssl pkey"),
    ):
        assert said in equivox.refused("verify", run, *options)
    code, out = verified(equivox, run, keys[1], keys[1])
    assert code == 1
    assert "no signed statement" in out


def test_a_signed_statement_about_something_else_is_named() -> None:
    from equivox.compare.believing import PREDICATE, check_statement

    for statement in ({"predicateType": "else"}, {"predicateType": PREDICATE, "subject": 3}, {}):
        found = Verification(run=Path("run"), manifest="aa")
        check_statement(found, statement, Path("x.dsse.json"))
        assert "no statement about a run" in found.problems[0]


def test_an_old_signature_never_stands_beside_a_new_pack(
    run: Path, equivox: Cli, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    pack = tmp_path / "pack"
    packed(equivox, pack, run, "--sign", keys[0])
    before = {path.name: path.read_bytes() for path in pack.iterdir()}
    assert "`--sign`" in equivox.refused("dossier", run, "--output", pack)
    assert {path.name: path.read_bytes() for path in pack.iterdir()} == before
    packed(equivox, pack, run, "--sign", keys[0])


def test_without_hashes_nothing_is_signed(run: Path, equivox: Cli, tmp_path: Path, keys: tuple[Path, Path]) -> None:
    from equivox.run.manifest import forget_hashes

    copy = shutil.copytree(run, tmp_path / "run")
    forget_hashes(copy)
    record, _ = packed(equivox, tmp_path / "unsigned", copy)
    assert record["runs"][0]["verified"].startswith("verified in part")
    assert "states no hashes" in equivox.refused("dossier", copy, "--output", tmp_path / "pack", "--sign", keys[0])


def test_a_missing_extra_is_one_line(
    run: Path, equivox: Cli, tmp_path: Path, keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    assert "equivox[sign]" in equivox.refused("dossier", run, "--output", tmp_path / "pack", "--sign", keys[0])
