"""GENRES on real machinery: images through vLLM, evaluators under the schema, sentences through a classifier.

The models are tiny and say noise. What is asserted is not: that every image arrived, that what cannot be split is
counted, that evaluators answer under the schema of their part, and that batches do not change a label.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")

from asking import annotator_file, need_torchvision, vllm_model
from made_requests import plan_rows

from equivox.annotate.schema import response_form
from equivox.core.errors import UsageError
from equivox.metrics.genres.annotation.scheme import PROFILE, narrative_attributes
from equivox.metrics.genres.annotation.tools import TransformersClassifier
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.run.store import stored_annotations, stored_responses
from equivox.tasks.registry import resolve_tasks

LIMIT = 4
pytestmark = pytest.mark.usefixtures("kept")
SENTENCES = ["Ana smiled.", "Ben broke the old blue jug and would not say why.", "Rain.", "They drank tea."] * 5

PAIRS = """\
benchmark: genres
name: evaluated
tools: {{parser: stand-in, sentiment: {sentiment}, emotions: stand-in, traits: stand-in, evaluations: 2}}
"""


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny DistilBERT with random weights and two labels."""
    import torch
    from tiny_models import tokenizer
    from transformers import DistilBertConfig, DistilBertForSequenceClassification

    folder = tmp_path_factory.mktemp("sentiment")
    words = tokenizer()
    torch.manual_seed(1)
    config = DistilBertConfig(
        vocab_size=len(words), dim=32, hidden_dim=64, n_layers=2, n_heads=2, pad_token_id=words.pad_token_id,
        id2label={0: "NEGATIVE", 1: "POSITIVE"}, label2id={"NEGATIVE": 0, "POSITIVE": 1},
    )  # fmt: skip
    model = DistilBertForSequenceClassification(config)
    with torch.no_grad():
        model.classifier.weight.mul_(40)  # far from a tie
    model.save_pretrained(folder)
    words.model_max_length = 64
    words.save_pretrained(folder)
    return folder


def test_a_batch_changes_no_label(classifier: Path) -> None:
    one = TransformersClassifier(str(classifier), batch_size=1).labels(SENTENCES)
    many = TransformersClassifier(str(classifier), batch_size=7).labels(SENTENCES)
    assert one == many == one[:4] * 5
    assert TransformersClassifier(str(classifier)).labels([]) == []
    assert len(TransformersClassifier(str(classifier)).labels(["word " * 500])) == 1


def test_a_classifier_that_cannot_serve_is_one_line(classifier: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be opened"):
        TransformersClassifier("no/such-model").labels(["x"])
    config = json.loads((classifier / "config.json").read_text("utf-8"))
    for file in classifier.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config["id2label"] = {"0": "calm", "1": "wild"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UsageError, match="no label that says positive, got"):
        TransformersClassifier(str(tmp_path)).labels(["x"])


def test_images_arrive_and_noise_is_counted_as_noise(model: Callable[[str], str], tmp_path: Path) -> None:
    need_torchvision()
    arguments = {"max_model_length": 4096, "max_num_batched_tokens": 4096, "max_num_seqs": 4}
    seeing, folder = vllm_model(model("qwen25omni"), max_new_tokens=64, **arguments), tmp_path / "run"
    tasks = resolve_tasks("genres_standin:cs,genres_standin:em")
    scores = execute(RunSpec(model=seeing, tasks=tasks, data="sample", limit=LIMIT, output=folder))
    stored = stored_responses(folder)
    assert len(stored) == 2 * LIMIT
    assert all(record["error"] is None for record in stored.values())
    assert all(record["media_items"] == 1 and record["media_tokens"] > 0 for record in stored.values())
    for score in scores:
        assert not score.defined and score.undefined_reason.code == "too_few_usable"
        assert score.coverage.generated == score.coverage.requested and score.coverage.used == 0


def test_evaluators_answer_under_the_schema_of_each_part(
    model: Callable[[str], str], classifier: Path, tmp_path: Path
) -> None:
    annotator = annotator_file(tmp_path / "tiny.yaml", model("llama_long"), temperature=0.0, max_new_tokens=700)
    tasks = tmp_path / "evaluated.yaml"
    tasks.write_text(PAIRS.format(sentiment=classifier) + "relationships: [mp]\n")
    folder = tmp_path / "run"
    spec = RunSpec(
        model="simulated:random",
        tasks=resolve_tasks(str(tasks)),
        data="sample",
        limit=LIMIT,
        output=folder,
        annotator=str(annotator),
    )
    scores = execute(spec)
    metadata = {row["key"]: dict(row["metadata"]) for row in plan_rows(folder)}
    read = list(stored_annotations(folder, "tiny").values())
    evaluated = [record for record in read if record["segment"]]
    # Two profiles and one narrative of each response, twice.
    assert len(evaluated) == LIMIT * 3 * 2
    filled = [record for record in evaluated if record["status"] == "parsed"]
    assert filled
    for record in filled:
        names = (metadata[record["response_key"]]["name_1"], metadata[record["response_key"]]["name_2"])
        attributes = PROFILE if record["segment"].startswith("profile") else narrative_attributes(names)
        response_form(attributes).model_validate_json(record["output"], strict=True)
    # What tools read is stored apart, once for all annotators, sentences by the real classifier among it.
    shared = list(stored_annotations(folder, "_tools").values())
    kinds = {record["segment"].partition("/")[0] for record in shared}
    assert {"language", "sentiment"} <= kinds
    labels = {v["value"] for record in shared if record["segment"].startswith("sentiment") for v in record["values"]}
    assert labels <= {"positive", "negative"} and labels
    by_name = {score.metric: score for score in scores if score.task == "evaluated:mp" and not score.subset}
    assert by_name["M3"].defined and by_name["M3"].coverage.used == LIMIT
