"""What a user installs: the wheel and the sdist carry everything, and run outside the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
from docs_pages import PAGES, all_blocks, blocks, file_named

ROOT = Path(__file__).resolve().parents[2]
CARRIED = (
    "equivox/tasks/vibe.py",
    "equivox/tasks/prompts/vibe.yaml",
    "equivox/metrics/ntvd/scorer.py",
    "equivox/configs/annotators/rules.yaml",
    "equivox/configs/simulated/prose.yaml",
    "equivox/configs/runs/demo.yaml",
    "equivox/configs/published/vibe.yaml",
    "equivox/dataset_builders/crema_d.py",
    "equivox/dataset_builders/identity_words.yaml",
    "equivox/dataset_builders/sample/crema_d.parquet",
    "equivox/dataset_builders/sample/l2_arctic.parquet",
    "equivox/dataset_builders/sample/spoken_stereoset.parquet",
    "equivox/configs/reading/choice.yaml",
    "equivox/configs/reading/choice_prompt.yaml",
    "equivox/tasks/prompts/spoken_stereoset.yaml",
    "equivox/py.typed",
    "equivox/report/style.css",
    "equivox/report/page/page.html.j2",
    "equivox/report/page/page.css",
    "equivox/report/page/page.js",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist from a copy of the tracked files, and the wheel from that sdist, as an index would."""
    folder = tmp_path_factory.mktemp("packaging")
    source = folder / "source"
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, tracked.stdout.decode().split("\0")):
        origin, copy = ROOT / name, source / name
        if not origin.is_symlink() and not origin.exists():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_symlink():
            copy.symlink_to(os.readlink(origin))
        else:
            copy.write_bytes(origin.read_bytes())
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist"), str(source)],
        check=True,
        capture_output=True,
    )
    return folder / "dist"


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


def test_the_wheel_carries_tasks_prompts_configs_and_the_sample(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in CARRIED if name not in names] == []
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "validity/", "tasks/"))]


def test_the_sdist_carries_the_same(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert [name for name in (*CARRIED, "README.md", "CHANGELOG.md", "constraints.txt") if name not in names] == []
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "validity/"))]


def test_the_base_install_asks_for_nothing_heavy(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    required = Parser().parsestr(archive.read(metadata).decode()).get_all("Requires-Dist") or []
    base = [line for line in required if "extra ==" not in line]
    assert base
    for heavy in ("torch", "vllm", "lighteval", "transformers"):
        assert not [line for line in base if line.startswith(heavy)]


def test_the_wheel_runs_a_task_in_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / "bin" / "python"
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(install, env=clean, check=True)
    # Dependencies come from this environment; a .pth in the other one adds the folder without running its .pth files,
    # so that the editable checkout stays out of reach.
    (site,) = (environment / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = subprocess.run(
        [str(python), "-c", "import equivox, equivox.tasks; print(equivox.__file__, equivox.tasks.__file__)"],
        cwd=tmp_path, env=clean, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert all(path.startswith(str(site)) for path in where.stdout.split())
    done = subprocess.run(
        [str(environment / "bin" / "equivox"), "run", "simulated:biased", "vibe_accent:advisory", "--data", "sample",
         "--output", "run"],
        cwd=tmp_path, env=clean, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())["scores"]
    assert scores[0]["value"] == pytest.approx(100)


PACKAGES = [
    (page, tomllib.loads(block)["project"], block)
    for page in PAGES
    for block in blocks(page, "toml")
    if "[project]" in block
]
"""The packages that the pages show: the page, what its project is, and the file that says so."""


@pytest.mark.parametrize(("page", "project", "declared"), PACKAGES, ids=[project["name"] for _, project, _ in PACKAGES])
def test_a_package_that_a_page_shows_can_be_installed(
    page: Path, project: dict[str, Any], declared: str, tmp_path: Path
) -> None:
    source, site = tmp_path / "source", tmp_path / "site"
    points = [target for group in project["entry-points"].values() for target in group.values()]
    modules = {target.partition(":")[0].replace(".", "/") for target in points}
    packages = {module.partition("/")[0] for module in modules}
    for _, block in all_blocks(page):
        if (name := file_named(block)) and name.removesuffix(".py").partition("/")[0] in packages:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text(block)
    (source / "pyproject.toml").write_text(declared)
    install = (sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--no-build-isolation")
    done = subprocess.run([*install, "--target", str(site), str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [module for module in modules if not (site / f"{module}.py").is_file()] == []


def test_the_wheel_has_the_version_that_the_package_states(wheel: Path) -> None:
    import equivox

    assert wheel.name.startswith(f"equivox-{equivox.__version__}-")


@pytest.mark.long
@pytest.mark.parametrize(
    "command",
    [
        "journal 200",
        "kills 2",
        "pool",
        "report 12",
        "scale 2000",
        "startup",
        "statistics --skip-leaderboard",
        "unify --sizes 200 400",
        "view 2000",
    ],
)
def test_every_benchmark_runs_in_its_smallest_form(command: str) -> None:
    name, *arguments = command.split()
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0 and done.stdout.strip(), done.stderr[-2000:]
