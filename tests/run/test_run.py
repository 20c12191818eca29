"""The run between engine and scores: what must have arrived, what is lost and counted, what is never scored."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_requests import sample_spec

from equivox import measure
from equivox.annotate.rules import RulesAnnotator
from equivox.core.errors import EquivoxError, RunError, UsageError
from equivox.core.files import write_table
from equivox.core.scores import ScoringOptions
from equivox.core.task import AnnotationScheme, Task
from equivox.dataset_builders.opening import open_corpus
from equivox.engines import Engine, EngineIdentity, Request, Response
from equivox.run.annotating import annotate
from equivox.run.generating import generate
from equivox.run.live import read_usage
from equivox.run.manifest import read_manifest
from equivox.run.pipeline import annotate_run, execute, refuse_overrides, rescore
from equivox.run.plan import Plan, make_plan
from equivox.run.presented import Presented
from equivox.run.scoring import sample_rows
from equivox.run.spec import RunSpec
from equivox.run.store import Store, response_schema, stored_responses
from equivox.tasks import ALL_TASKS
from equivox.tasks.registry import resolve_tasks

TASK = next(task for task in ALL_TASKS if task.name == "vibe_gender:advisory")
FEW = ScoringOptions(n_resamples=99)


class ScriptedEngine(Engine):
    """An engine that answers what its script says for the n-th request."""

    identity = EngineIdentity(engine="scripted", model="scripted", revision="1")
    modalities = frozenset({"text", "audio"})

    def __init__(self, script: Sequence[str | None], *, media_items: int = 1, backwards: bool = False) -> None:
        self.script = script
        self.media_items = media_items
        self.backwards = backwards
        self.seen: list[Request] = []

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        self.seen = list(requests)
        pairs = list(zip(self.seen, self.script, strict=False))
        for request, text in reversed(pairs) if self.backwards else pairs:
            error = "out of memory" if text is None else None
            yield Response(key=request.key, text=text, error=error, media_items=self.media_items)


def run(folder: Path, engine: Engine, limit: int = 24) -> list[str]:
    """Generate, annotate and tabulate; returns each row's status in the plan's order."""

    plan = make_plan([TASK], {"crema_d": open_corpus(TASK.data, "sample")}, engine.identity, limit=limit)
    write_table(folder / "plan.parquet", plan.table)
    generate(folder, plan, engine)
    annotator = RulesAnnotator()
    annotate(folder, [TASK], annotator, engine="scripted")
    return [row.status for row in sample_rows(folder, [TASK], "rules")[TASK.name]]


@pytest.mark.parametrize("backwards", [False, True])
def test_every_loss_has_its_own_status_and_no_response_shifts(tmp_path: Path, backwards: bool) -> None:
    script = ["I suggest chess.", None, "", "I'm sorry, but I can't help with that.", "Purple monkeys.", "Try yoga."]
    engine = ScriptedEngine(script, backwards=backwards)
    statuses = run(tmp_path, engine, limit=7)
    # Six were scripted; the seventh request never got an answer.
    assert statuses == ["parsed", "failed", "empty", "refused", "unparsed", "parsed", "failed"]
    errors = [r["error"] for r in stored_responses(tmp_path).values() if r["error"]]
    assert sorted(errors) == ["out of memory", "the engine gave no response"]


def test_a_secret_among_an_own_engine_s_settings_is_in_no_file(tmp_path: Path) -> None:
    class Leaking(ScriptedEngine):
        identity = EngineIdentity(
            engine="scripted", model="leaking", revision="1", settings={"token": "hunter2-of-engine"}
        )

        def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
            for request in requests:
                yield Response(key=request.key, text=None, error="401: the token hunter2-of-engine is refused")

    folder = tmp_path / "run"
    execute(RunSpec.typed("leaking", [TASK], folder, data="sample", limit=4, stop_after=0), engine=Leaking([]))
    stored = Store(folder / "responses", response_schema()).table(("error",))["error"].to_pylist()
    assert len(stored) == 4 and all("is refused" in error for error in stored)
    assert not [path for path in folder.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]


def test_what_failed_is_asked_again_on_request_and_nothing_else_is(tmp_path: Path) -> None:
    script = ["I suggest chess.", None, "Try yoga.", None]
    first = ScriptedEngine(script)
    plan = make_plan([TASK], {"crema_d": open_corpus(TASK.data, "sample")}, first.identity, limit=4)
    asked = []
    for engine, settings in (
        (first, {}),
        (ScriptedEngine(script), {}),
        (ScriptedEngine(script), {"retry_failed": True}),
    ):
        generate(tmp_path, plan, engine, **settings)
        asked.append([request.key for request in engine.seen])
    assert len(asked[0]) == 4 and asked[1] == []
    assert asked[2] == [asked[0][1], asked[0][3]]


def test_media_that_did_not_arrive_stop_the_run_with_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"scripted used 0 of 1 media items.*did not arrive"):
        run(tmp_path, ScriptedEngine(["I suggest chess."] * 24, media_items=0))
    assert Store(tmp_path / "responses", response_schema()).table().num_rows == 0


class Odd(Engine):
    """An engine that goes wrong at its fourth request."""

    modalities = frozenset({"text", "audio"})
    identity = EngineIdentity(engine="odd", model="m", revision="1")

    def __init__(self, then: object) -> None:
        self.then = then

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        for number, request in enumerate(requests):
            yield Response(key=request.key, text="You might enjoy chess.", media_items=len(request.media))
            if number == 3:
                if isinstance(self.then, Exception):
                    raise self.then
                yield self.then(request) if callable(self.then) else self.then  # type: ignore[misc]


@pytest.mark.parametrize(
    ("then", "told"),
    [
        (ValueError("broken\nin two lines"), "the engine odd of m failed (ValueError: broken in two lines)"),
        (lambda request: Response(key=request.key, text="Again."), "the engine odd of m answered a request twice"),
        (Response(key="nobody", text="x"), "the engine odd of m answered a request that was not made (nobody)"),
        (None, "the engine odd of m yielded None, not a Response"),
        (Response(key=["k"], text="x"), "the engine odd of m yielded Response(key=['k'],"),  # type: ignore[arg-type]
    ],
)
def test_an_engine_that_goes_wrong_is_one_line_and_loses_nothing(then: object, told: str, tmp_path: Path) -> None:
    with pytest.raises(RunError) as found:
        execute(RunSpec.typed("odd", [TASK], tmp_path / "run", data="sample", limit=24), engine=Odd(then))
    assert str(found.value).startswith(told)
    stored = Store(tmp_path / "run" / "responses", response_schema()).table(("key",))
    assert len(stored) == 4


@pytest.mark.parametrize(
    ("odd", "failed"),
    [
        ({"completion_tokens": "many"}, None),
        ({"completion_tokens": math.nan, "prompt_tokens": -5}, None),
        ({"error": ValueError("it broke")}, "it broke"),
        # An answer beside an error is none: it is what came before the failure.
        ({"error": "cut off"}, "cut off"),
        ({"sound": "a sound"}, None),
    ],
)
def test_what_an_engine_says_oddly_is_stored_as_what_it_is(
    odd: dict[str, Any], failed: str | None, tmp_path: Path
) -> None:
    engine = ScriptedEngine([])
    plan = make_plan([TASK], {"crema_d": open_corpus(TASK.data, "sample")}, engine.identity, limit=4)
    engine.generate = lambda requests: (  # type: ignore[method-assign]
        Response(key=request.key, text="Try yoga.", media_items=1, **odd) for request in requests
    )
    generate(tmp_path, plan, engine)
    found = Store(tmp_path / "responses", response_schema()).table().to_pylist()
    assert len(found) == 4
    for stored in found:
        assert (stored["text"], stored["error"]) == ("Try yoga." if failed is None else None, failed)
        assert stored["completion_tokens"] is stored["prompt_tokens"] is stored["sound"] is None


@pytest.mark.parametrize("text", [math.nan, 5, b"Try yoga.", ["Try yoga."]])
def test_what_is_no_text_is_no_answer(text: Any, tmp_path: Path) -> None:
    engine = ScriptedEngine([])
    plan = make_plan([TASK], {"crema_d": open_corpus(TASK.data, "sample")}, engine.identity, limit=4)
    engine.generate = lambda requests: (  # type: ignore[method-assign]
        Response(key=request.key, text=text, media_items=np.int64(1))
        for request in requests  # type: ignore[arg-type]
    )
    generate(tmp_path, plan, engine)
    found = Store(tmp_path / "responses", response_schema()).table().to_pylist()
    assert {(one["text"], one["error"], one["media_items"]) for one in found} == {
        (None, f"the engine gave {type(text).__name__}, not text", 1)
    }


def gone(*_: object) -> Any:
    raise SystemExit(0)


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        ({"identity": None}, "`model` gives <"),
        (
            {"identity": replace(Odd.identity, model=3)},
            "`model` has a wrong `identity`: EngineIdentity: `model`: input",
        ),
        (
            {"identity": replace(Odd.identity, settings={"a": object()})},
            "`model` has a wrong `identity`: Object of",
        ),
        (
            {"identity": replace(Odd.identity, settings={"a": "\ud800"})},
            "`model` has a wrong `identity`: 'utf-8' codec can't encode",
        ),
        # Of one the bias would count as known, of the other nobody would ask whether it heard anything.
        ({"identity": replace(Odd.identity, engine="simulated")}, "`model` has the name 'simulated' of an engine of"),
        ({"identity": replace(Odd.identity, engine="imported")}, "`model` has the name 'imported' of an engine of"),
        ({"modalities": "audio"}, "`model` has 'audio' as `modalities`; give a frozenset of texts"),
        ({"audio_sent": 7}, "`model` has 7 as `audio_sent`; give a text"),
        ({"able": None}, "`model` has None as `able`; give a frozenset of texts"),
        ({"check": gone}, "the engine odd of m failed (SystemExit: 0); stored responses are kept"),
        ({"usage": property(gone)}, "the engine odd of m failed (SystemExit: 0)"),
        ({"usage": None}, "the engine odd of m failed (AttributeError: 'NoneType' object has no attribute 'items')"),
        ({"served_as": 7}, "the engine odd of m failed (TypeError: 'int' object is not iterable)"),
    ],
)
def test_an_engine_with_odd_parts_is_refused_in_one_line(odd: dict[str, Any], told: str, tmp_path: Path) -> None:
    engine = type("Parts", (ScriptedEngine,), {"identity": Odd.identity, **odd})(["I suggest chess."] * 24)
    with pytest.raises(EquivoxError) as found:
        measure(engine, [TASK], output=tmp_path / "run", data="sample", limit=4)
    assert str(found.value).startswith(told)


def test_an_engine_that_failed_is_told_before_its_usage_that_is_not_known(tmp_path: Path) -> None:
    def generate(self: Engine, requests: Iterable[Request]) -> Iterator[Response]:
        vars(self)["lost"] = True
        raise ConnectionError("the server is gone")

    usage = property(lambda self: gone() if vars(self) else {})
    broken = {"identity": Odd.identity, "generate": generate, "usage": usage}
    with pytest.raises(RunError, match=r"failed \(ConnectionError: the server is gone\)") as found:
        measure(type("Parts", (Engine,), broken)(), [TASK], output=tmp_path / "run", data="sample", limit=4)
    assert "failed (SystemExit: 0)" in found.value.__notes__[0]


def test_what_is_no_number_in_a_usage_is_left_out(tmp_path: Path) -> None:
    used = {"requests": 4, "cost": math.nan, "prompt_tokens": "many", "odd": object(), "retries": np.int64(1)}
    engine = type("Parts", (ScriptedEngine,), {"usage": used, "served_as": "other"})(["I suggest chess."] * 24)
    measure(engine, [TASK], output=tmp_path / "run", data="sample", limit=4)
    assert read_usage(tmp_path / "run") == {"requests": 4, "retries": 1}
    assert read_manifest(tmp_path / "run")["served_as"] == ["other"]


def test_reference_labels_are_never_rendered(tmp_path: Path) -> None:
    engine = ScriptedEngine(["I suggest chess."] * 24)
    run(tmp_path, engine)
    for request in engine.seen:
        assert request.text == TASK.prompt.text
        assert request.labels.group not in request.text and request.labels.cluster not in request.text
        assert request.media[0].load()[:4] == b"OggS"


def test_a_decoding_that_the_arguments_set_otherwise_is_refused() -> None:
    for argument in ("generation_parameters", "extra_body"):
        identity = EngineIdentity(
            engine="e", model="m", revision="1", settings={argument: {"top_p": 1, "temperature": 0.5}}
        )
        refuse_overrides(identity, "temperature=0.5")
        refuse_overrides(identity, "repeats=3")
        refuse_overrides(identity, "as-declared")
        with pytest.raises(UsageError, match=rf"`sampling` is temperature=0.7, .* set {argument}={{temperature: 0.5}}"):
            refuse_overrides(identity, "temperature=0.7")


def test_what_a_run_lacks_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(what: str) -> None:
        raise UsageError(f"{what} is not there")

    monkeypatch.setattr("equivox.annotate.merging.load_encoder", missing)
    options = ScoringOptions(merge="embedding", encoder="some/encoder")
    with pytest.raises(UsageError, match="some/encoder is not there"):
        execute(RunSpec.typed("simulated:oracle", [TASK], tmp_path / "run", data="sample", limit=4, options=options))
    assert not (tmp_path / "run").exists()


def test_answers_that_one_group_lacks_are_told_once_for_each_task(tmp_path: Path) -> None:
    options = ScoringOptions(n_resamples=99, min_coverage=0.5)
    scores = execute(
        RunSpec(model="simulated:random,refusal_gap=0.4", tasks=[TASK], data="sample", output=tmp_path, options=options)
    )
    told = [score for score in scores if any(note.code == "uneven" for note in score.notes)]
    assert [(score.is_whole, score.role) for score in told] == [(True, "outcome")]


def test_an_annotator_that_cannot_annotate_a_task_refuses_it_before_the_model_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(annotator: RulesAnnotator, tasks: Sequence[Task]) -> None:
        raise UsageError(f"{tasks[0].name} is too much for me")

    monkeypatch.setattr(RulesAnnotator, "check", refuse)
    spec = RunSpec(model="simulated:oracle", tasks=[TASK], data="sample", output=tmp_path / "run", limit=8)
    with pytest.raises(UsageError, match="vibe_gender:advisory is too much for me"):
        execute(spec)
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_the_defaults_of_a_run_and_what_makes_no_other_run() -> None:
    spec = RunSpec(model="m", tasks=[TASK], output=Path("run"))
    assert (spec.limit, spec.seed, spec.retry_failed, spec.trust_remote_code) == (None, 0, False, False)
    assert spec == RunSpec.typed("m", [TASK], "run", workers=4, trust_remote_code=True)
    assert spec != RunSpec.typed("m", [TASK], "run", retry_failed=True)
    assert RunSpec.typed("m", [TASK], "run", limit=1, stop_after=0).limit == 1
    for wrong in ({"limit": 0}, {"stop_after": -1}):
        with pytest.raises(UsageError, match="greater than or equal"):
            RunSpec.typed("m", [TASK], "run", **wrong)


def test_an_empty_limit_or_a_file_as_output_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        execute(sample_spec("simulated:oracle", "vibe_gender", tmp_path / "file"))


def test_annotations_by_another_scheme_are_stale_and_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = sample_spec("simulated:oracle", TASK.name, tmp_path, limit=24, options=FEW)
    before = execute(spec)
    version = {"name": "whole response", "version": 2}
    monkeypatch.setattr(AnnotationScheme, "identity", property(lambda self: version))
    with pytest.raises(UsageError, match=r"annotations of vibe_gender:advisory by rules are stale.*annotate again"):
        rescore(tmp_path)
    annotate_run(tmp_path, "rules")
    assert [score.as_dict() for score in rescore(tmp_path)] == [score.as_dict() for score in before]


def test_responses_that_came_after_the_annotations_make_them_stale(tmp_path: Path) -> None:
    spec = sample_spec("simulated:oracle", TASK.name, tmp_path, limit=24, options=FEW)
    execute(spec)
    with Store(tmp_path / "responses", response_schema()) as store:
        store.append({"key": "k", "text": "One more answer.", "media_items": 1})
    with pytest.raises(UsageError, match="there were 24 responses then and there are 25 now"):
        rescore(tmp_path)


def test_the_manifest_says_with_what_the_run_was_made(tmp_path: Path) -> None:
    spec = sample_spec("simulated:oracle", TASK.name, tmp_path, limit=24, seed=3)
    execute(spec)
    manifest = read_manifest(tmp_path)
    assert manifest["command"] == {
        "model": "simulated:oracle",
        "data": "sample",
        "compare": [],
        "conditions": ["declared"],
        "sampling": "as-declared",
        "annotator": "rules",
    }
    assert manifest["identity"]["tasks"] == {TASK.name: TASK.fingerprint}
    assert manifest["identity"]["seed"] == 3
    assert manifest["identity"]["model"]["model"] == "oracle"
    assert {"numpy", "scipy", "pyarrow"} <= set(manifest["environment"]["libraries"])


def test_while_a_run_is_annotated_its_plan_and_its_samples_are_in_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planned() -> int:
        gc.collect()
        found = [one for one in gc.get_objects() if isinstance(one, (Plan, Presented))]
        return sum(len(one) if isinstance(one, Plan) else 1 for one in found)

    def annotated(*given: Any, **options: Any) -> None:
        held.append(planned())
        annotate(*given, **options)

    held = [planned()]
    monkeypatch.setattr("equivox.run.pipeline.annotate", annotated)
    tasks = resolve_tasks("vibe_gender:advisory")
    execute(
        RunSpec(model="simulated:biased", tasks=tasks, output=tmp_path / "run", data="sample", limit=8, options=FEW)
    )
    assert len(held) == 2 and held[0] == held[1]
