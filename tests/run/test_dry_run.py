"""A dry run checks everything, writes nothing, and says what the run would take; plans reckon with workers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Cli, write_rows
from made_requests import made_request, sample_spec

from equivox.annotate.model import prompt_text
from equivox.core.files import write_document
from equivox.core.requests import Exchange
from equivox.core.task import Sampling
from equivox.run.cost import MEDIA_TOKENS, _lengths, annotator_effort, dry_run, estimate, target_effort
from equivox.run.live import Speed, add_speed, add_usage, read_speed, read_usage
from equivox.run.run_files import EstimateFields, open_run_file, settings_of
from equivox.tasks.registry import resolve_tasks


def test_nothing_is_written_and_the_requests_are_counted(equivox: Cli, tmp_path: Path) -> None:
    run = ("run", "simulated:biased", "vibe_gender:candidate", "--data", "sample", "--limit", 24, "--output")
    code, out, err = equivox(*run, tmp_path / "a", "--dry-run")
    assert (code, err) == (0, "")
    assert "Nothing was written. 1 task, 24 requests\n" in out
    assert not (tmp_path / "a").exists()
    assert equivox(*run, tmp_path / "a", "--scoring", "n_resamples=99")[0] in {0, 1}
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("*")}
    assert "24 requests, of which 24 have a response" in equivox(*run, tmp_path / "a", "--dry-run")[1]
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("*")} == before


def test_requests_without_a_counterpart_are_told_before_they_are_asked(equivox: Cli, tmp_path: Path) -> None:
    # One of four women and one of four men live in a city that both have; each is asked about three times.
    cities = {"f": ("both", "north", "north", "east"), "m": ("both", "south", "south", "west")}
    rows = [
        {"person": f"{group}{place}", "group": group, "city": city, "text": f"Case {n} of {group}{place}?"}
        for group, own in cities.items() for place, city in enumerate(own) for n in range(3)
    ]  # fmt: skip
    write_rows(tmp_path / "cases.csv", rows)
    file = tmp_path / "cases.yaml"
    file.write_text(
        "name: cases\ntable: cases.csv\ngroup: group\ncluster: person\nstrata: city\nquestions:\n"
        "  - {name: advice, text: '{text}', attributes: [{name: advice, asks: it, options: [wait, act]}]}\n"
    )
    _, out, _ = equivox("run", "simulated:random", file, "--output", tmp_path / "a", "--dry-run")
    told = "18 requests will not be compared: in what the task holds equal, some group has none"
    assert f"cases_group:advice: {told}" in " ".join(out.split())
    file.write_text(file.read_text().replace("strata: city\n", ""))
    assert "will not be compared" not in equivox("run", "simulated:random", file, "-o", tmp_path / "a", "--dry-run")[1]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (("--data", "elsewhere"), "holds no built corpus"),
        (("--annotator", "qwen4"), "unknown `annotator`"),
        (("--conditions", "louder"), "louder"),
    ],
)
def test_what_a_run_refuses_a_dry_run_refuses(
    equivox: Cli, tmp_path: Path, changed: tuple[str, ...], words: str
) -> None:
    data = () if "--data" in changed else ("--data", "sample")
    run = ("run", "simulated:biased", "vibe_gender:story", *data, *changed, "--output", tmp_path / "a")
    err = equivox.refused(*run, "--dry-run")
    assert words in err
    assert err == equivox(*run)[2]


def test_an_endpoint_with_prices(equivox: Cli, tmp_path: Path, chat_server: Callable[..., str]) -> None:
    asked: list[object] = []

    def reply(body: dict[str, object]) -> tuple[int, str]:
        asked.append(body)
        return 200, "A nurse."

    arguments = f"model_name=m,base_url=http://{chat_server(reply)}/v1,prompt_price=2,completion_price=10"
    spec = sample_spec(f"endpoint:{arguments}", "vibe_gender:story", tmp_path / "a", limit=20)
    found = dry_run(spec)
    (request,) = {len(one.prompt.text) for one in spec.tasks}
    # Each prompt is its text, a token for 4 characters, and one recording; an answer has 300 tokens.
    assert found.target.prompt_tokens == pytest.approx(20 * (request / 4 + MEDIA_TOKENS))
    assert found.target.completion_tokens == 20 * 300
    assert found.target.cost == pytest.approx((2 * found.target.prompt_tokens + 10 * 20 * 300) / 1e6)
    assert (found.target.gpu_hours, found.annotator) == (0, None)
    judged = dry_run(replace(spec, annotator=f"endpoint:{arguments}")).annotator
    (segment,) = spec.tasks[0].annotation.most_calls(spec.tasks[0])
    # One question to the annotator for each answer: its words, and an answer of 300 tokens.
    assert judged is not None and judged.calls == 20
    assert judged.prompt_tokens == pytest.approx(20 * (len(prompt_text(segment)) / 4 + 300))
    asked.clear()
    dry_run(spec)
    run = (
        "run",
        f"endpoint:{arguments}",
        "vibe_gender:story",
        "--data",
        "sample",
        "--limit",
        20,
        "--annotator",
        "rules",
        "--output",
        tmp_path / "a",
    )
    code, out, err = equivox(*run, "--dry-run")
    assert (code, err) == (0, "")
    assert "endpoint:m " in out and f"{found.target.cost:.2f}" in out and "base_url" not in out
    assert not (tmp_path / "a").exists()
    # Each dry run checks the server by one word; the media and the prompts are not sent.
    assert len(asked) == 2


def test_the_lengths_of_requests_are_their_means() -> None:
    # Four characters are a token: 1 of the system, 9 of the text, and 10 of the turn before, whose answer has 300.
    before = (Exchange(text="y" * 40),)
    long = made_request(1, text="x" * 36, system="Now.", before=before, sampling=Sampling(max_new_tokens=50))
    short = made_request(2, text="x" * 160, sampling=Sampling(max_new_tokens=100))
    found = [_lengths(asked) for asked in ([long], [short], [long, short], [])]
    assert found == [(1 + 9 + 10 + 300, 50), (40, 100), ((320 + 40) / 2, 75), (0, 0)]


def test_hours_on_the_clock_are_gpu_hours_over_the_workers() -> None:
    one, eight = (target_effort("vllm:model_name=org/m", 90_000, workers=n) for n in (1, 8))
    # 90,000 answers of 300 tokens at 2,500 a second: 3 hours of one GPU.
    assert (one.gpu_hours, one.hours, eight.gpu_hours, eight.hours) == pytest.approx((3, 3, 3, 3 / 8))
    # Two GPUs each: 2,500 tokens a second on each GPU is a guess, so the GPU-hours stay and the hours halve.
    halved = target_effort("vllm:model_name=org/m,tensor_parallel_size=2", 90_000, workers=4)
    assert (halved.gpu_hours, halved.hours) == pytest.approx((3, 3 / 8))
    assert target_effort("vllm:model_name=org/m,data_parallel_size=4", 90_000).hours == pytest.approx(3 / 4)
    # Two requests keep two workers busy.
    few = target_effort("vllm:model_name=org/m", 2, workers=8)
    assert few.hours == pytest.approx(few.gpu_hours / 2)
    reader = annotator_effort("qwen3-8b", 90_000, workers=4)
    assert (reader.gpu_hours, reader.hours) == pytest.approx((1, 1 / 4))
    bought = annotator_effort("gpt-4o", 90_000, workers=4)
    assert (bought.engine, bought.gpu_hours, bought.hours) == ("endpoint", 0, 0)
    assert not reader.measured
    # Without a number of workers there is one.
    assert target_effort("vllm:model_name=org/m", 90_000) == one
    assert annotator_effort("qwen3-8b", 90_000).hours == pytest.approx(1)


def test_a_simulated_model_takes_nothing() -> None:
    found = target_effort("simulated:biased", 10)
    assert (found.calls, found.prompt_tokens, found.completion_tokens, found.tokens_per_second) == (10, 0, 0, 0)
    assert (found.measured, found.gpu_hours, found.hours) == (False, 0, 0) and math.isnan(found.cost)


@pytest.mark.parametrize("price", ["-2", "free", "0"])
def test_a_price_that_is_none_gives_no_cost(tmp_path: Path, price: str) -> None:
    model = f"endpoint:model_name=m,base_url=http://127.0.0.1:9/v1,prompt_price={price}"
    effort = target_effort(model, 10, EstimateFields(prompt_tokens=100, completion_tokens=10), folder=tmp_path)
    assert math.isnan(effort.cost)


def test_servers_of_ones_own_take_gpu_hours() -> None:
    # 40 tokens a second for each answer at a time: 90,000 answers of 300 tokens, one after the other, take 187.5 hours.
    local = "endpoint:model_name=m,base_url=http://127.0.0.1:8004/v1"
    alone = target_effort(f"{local},max_concurrency=1", 90_000, workers=8)
    assert (alone.gpu_hours, alone.hours) == pytest.approx((187.5, 187.5))
    batched = target_effort(f"{local},max_concurrency=32", 90_000)
    assert batched.hours == pytest.approx(187.5 / 32)
    many = target_effort(f"{local},max_concurrency=512", 90_000)
    assert many.hours == pytest.approx(3)  # no more than the 2,500 a second of a GPU
    two = "endpoint:model_name=m,base_url=[http://127.0.0.1:1/v1,http://localhost:2/v1],max_concurrency=1"
    shared = target_effort(two, 90_000)
    assert (shared.gpu_hours, shared.hours) == pytest.approx((187.5, 187.5 / 2))
    for bought in ("base_url=https://api.example.org/v1", "base_url=http://127.0.0.1:1/v1,prompt_price=1"):
        assert target_effort(f"endpoint:model_name=m,{bought}", 90_000).gpu_hours == 0


def test_a_measured_speed_is_that_of_one_worker(tmp_path: Path) -> None:
    # 100 answers of 100 tokens in 10 seconds from 4 workers: 250 tokens a second each.
    add_speed(tmp_path, Speed(responses=100, tokens=10_000, seconds=10.0, worker_seconds=40.0))
    assert read_speed(tmp_path).per_second == 250
    found = target_effort("vllm:model_name=org/m,tensor_parallel_size=2", 36_000, folder=tmp_path, workers=4)
    # 36,000 × 100 tokens at 250 a second are 4 hours of a worker, 8 of a GPU.
    assert (found.measured, found.gpu_hours, found.hours) == (True, 8, 1)
    # A file without the seconds of workers is that of one worker.
    write_document(tmp_path / "old" / "speed.json", {"responses": 100, "tokens": 10_000, "seconds": 10.0})
    assert read_speed(tmp_path / "old").per_second == 1000


@pytest.mark.parametrize(("requests", "tokens", "measured"), [(20, (100, 7), True), (19, (600, 300), False)])
def test_tokens_are_those_of_twenty_requests_or_guesses(
    requests: int, tokens: tuple[int, int], measured: bool, tmp_path: Path
) -> None:
    add_usage(tmp_path, {"requests": requests, "prompt_tokens": 100 * requests, "completion_tokens": 7 * requests})
    found = target_effort("endpoint:model_name=m,base_url=https://api.example.org/v1", 10, folder=tmp_path)
    assert (found.prompt_tokens, found.completion_tokens, found.measured) == (10 * tokens[0], 10 * tokens[1], measured)


def test_what_was_used_adds_up_over_starts(tmp_path: Path) -> None:
    add_usage(tmp_path, {"requests": 3, "tokens": 50})
    add_usage(tmp_path, {"requests": 7, "tokens": 90}, before={"requests": 3, "tokens": 50})
    add_usage(tmp_path, {"requests": 7, "tokens": 90}, before={"requests": 7, "tokens": 90})
    assert read_usage(tmp_path) == {"requests": 7, "tokens": 90}


def test_a_plan_names_the_hours_and_the_prices(equivox: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    server = "endpoint:model_name=m,base_url=http://127.0.0.1:9/v1,prompt_price=1,completion_price=4"
    file.write_text(
        f"models: ['vllm:model_name=org/m', '{server}']\ntasks: vibe_gender:story\ndata: sample\nworkers: 4\n"
        "estimate: {completion_tokens: 100, prompt_tokens: 500}\n"
    )
    settings = settings_of(open_run_file(str(file)), resolve_tasks)
    (_, on_gpu, readers), (_, on_server, _) = estimate(settings, workers=4).models
    assert on_gpu.hours == pytest.approx(on_gpu.gpu_hours / 4) and readers == []
    assert math.isnan(on_gpu.cost)
    assert on_server.cost == pytest.approx(288 * (500 * 1 + 100 * 4) / 1e6)
    out = equivox("reproduce", file, "--dry-run")[1]
    assert "hours on 4 workers" in out and "0.26" in out
    assert estimate(settings).workers == 1 and estimate(settings).models[0][1].hours == 4 * on_gpu.hours
    assert "hours on 8 workers" in equivox("reproduce", file, "--dry-run", "--workers", 8)[1]
    assert "hours on" not in equivox("reproduce", file, "--dry-run", "--workers", 1)[1]
