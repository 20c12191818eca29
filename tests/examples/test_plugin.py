"""The example package: installed into a fresh environment, it adds a task, a metric, an engine and a corpus."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SEVERAL = """
import json, sys
from equivox import cli
for words in json.loads(sys.argv[1]):
    assert cli.run(words) == 0, words
    print("\f", end="")
"""


class Environment:
    """A fresh environment with equivox as it is installed here, and nothing else of this one's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder / "venv")
        self.python = folder / "venv" / "bin" / "python"
        site = Path(self.run("-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip())
        # What is installed here is seen there, equivox itself from the checkout.
        seen = [str(ROOT), sysconfig.get_path("purelib")]
        (site / "beside.pth").write_text("\n".join(seen) + "\n")

    def run(self, *arguments: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONHOME"}}
        done = subprocess.run(
            [str(self.python), *map(str, arguments)],
            cwd=self.folder, capture_output=True, text=True, check=False, env=environment,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done

    def several(self, *commands: Sequence[str]) -> list[str]:
        """Run commands in one process, which takes seconds to start; each must end with 0. Returns what each prints."""
        return self.run("-c", SEVERAL, json.dumps(commands)).stdout.split("\f")[:-1]

    def equivox(self, *arguments: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "equivox", *arguments, check=check)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("plugin")
    made = Environment(folder)
    shutil.copytree(ROOT / "examples" / "plugin", folder / "source")
    made.run("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", folder / "source")
    return made


def test_it_is_listed_and_runs_resumes_scores_compares_and_reports(environment: Environment) -> None:
    few = ("--scoring", "n_resamples=199")
    run = ("run", "flatterer:extra=2", "letters", "--annotator", "rules", "--output", "biased", *few)
    tasks, out = environment.several(("tasks",), run)
    listed = tasks.splitlines()
    assert listed[next(n for n, line in enumerate(listed) if line.startswith("letters  ")) + 1] == "    praise"
    assert "praise" in out
    folder = environment.folder / "biased"
    score, refusal = json.loads((folder / "scores.json").read_text())["scores"]
    assert refusal["undefined_reason"]["code"] == "no_refusals"
    # One, two or three virtues, and two more for women: the difference is 2 but for chance.
    assert score["metric"] == "praise"
    assert 1 < score["value"] < 3 and score["p"] < 0.05
    before = (folder / "scores.json").read_bytes()
    even = ("run", "flatterer:extra=0", "letters", "--annotator", "rules", "--output", "even", *few)
    report = ("report", "biased", "even", "--output", "report.html")
    push = ("data", "push", "letters", "--repo", "me/letters", "--output", "hub")
    *_, compared, _, pushed = environment.several(
        run, ("score", "biased", *few), even, ("compare", "biased", "even"), report, push
    )
    assert "letters-praise: 24 rows" in pushed
    assert (folder / "scores.json").read_bytes() == before
    fair, _ = json.loads((environment.folder / "even" / "scores.json").read_text())["scores"]
    assert abs(fair["value"]) < 1
    assert "flatterer:extra=0" in compared
    assert "letters:praise" in (environment.folder / "report.html").read_text()


@pytest.mark.long
def test_its_scores_are_submitted_by_its_own_rule(environment: Environment) -> None:
    environment.equivox(
        "run",
        "flatterer:extra=2",
        "letters",
        "--annotator",
        "rules",
        "--output",
        "submitted",
        "--scoring",
        "n_resamples=199",
    )
    submit = ("submit", "submitted", "--model-repo", "org/model", "--benchmark", "org/letters", "-o", "out")
    refused = environment.equivox(*submit, check=False)
    assert refused.returncode == 2 and "tasks that equivox does not come with: letters:praise" in refused.stderr
    done = environment.equivox(*submit, "--mark", "modified-data")
    (entry,) = json.loads((environment.folder / "out" / "equivox.json").read_text())["values"].items()
    assert entry[0] == "letters-praise" and -3 < entry[1] < -1, done.stdout


def test_what_the_engine_refuses_is_one_line(environment: Environment) -> None:
    done = environment.equivox(
        "run", "flatterer:extra=9", "letters", "--annotator", "rules", "--output", "no", check=False
    )
    assert done.returncode == 2
    assert done.stderr.strip() == "equivox: the flatterer takes extra=0 to extra=3, got {'extra': 9}"
    assert not (environment.folder / "no").exists()


@pytest.mark.long
def test_without_the_package_its_runs_say_what_is_missing(environment: Environment) -> None:
    environment.equivox(
        "run",
        "flatterer:extra=1",
        "letters",
        "--annotator",
        "rules",
        "--output",
        "orphan",
        "--scoring",
        "n_resamples=199",
    )
    done = subprocess.run(
        [sys.executable, "-m", "equivox", "score", str(environment.folder / "orphan")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "names code of 'letters.metric'" in done.stderr and "install the package" in done.stderr
