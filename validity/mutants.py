"""How much the tests notice: lines changed on purpose, one at a time, and the tests of the room run on each.

    python -m validity.mutants --count 200 --seed 39

needs `coverage`. The tests of each room run once to learn which tests reach which line and how long each takes. Then
each changed line is tried on the tests that reach it, the quickest first, and what they let through on all tests of
the room: a result that a cache or a shared fixture keeps is used by tests that do not reach the line themselves.
Changes are made in copies of the tree, never in the tree itself.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

ROOMS = ("statistics", "run", "annotate", "compare", "io")
PATIENCE_S = 600
"""A change after which the tests run longer than this is noticed: an endless loop."""
LARGEST = 100
"""Whole numbers above this are sizes, such as the number of draws, where one more is no other behaviour."""

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
}
_SAME_EITHER_WAY = {"strict", "maxsize", "copy", "stacklevel", "default_flow_style", "repr"}
"""Arguments whose change no caller can see in a result that is right."""


@dataclass(frozen=True)
class Mutant:
    """One change of one line; `line` and `was`, `now` are for people, `source` is the whole changed file."""

    room: str
    path: str
    line: int
    was: str
    now: str
    source: str


def mutants_of(path: Path, room: str, root: Path) -> Iterator[Mutant]:
    """Yield every change of a file that the script knows how to make."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    raw = source.encode()
    for node, changed in _changes(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        now = ast.unparse(ast.fix_missing_locations(changed))
        text = now if isinstance(changed, ast.stmt) else f"({now})"
        whole = (raw[:start] + text.encode() + raw[end:]).decode()
        compile(whole, str(path), "exec")
        yield Mutant(room, str(path.relative_to(root)), node.lineno, ast.unparse(node), now, whole)


def _changes(tree: ast.Module) -> Iterator[tuple[Any, Any]]:
    """Yield (node, changed node) of code that runs: no annotations, docstrings, decorators, messages or imports."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield from ((node, changed) for changed in _changed(node))
        if isinstance(node, ast.If | ast.IfExp | ast.While) and isinstance(
            node.test, ast.Name | ast.Attribute | ast.Call
        ):
            yield node.test, ast.UnaryOp(ast.Not(), deepcopy(node.test))
        skipped: list[Any] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            skipped += node.decorator_list
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            skipped.append(node.returns)
        if isinstance(node, ast.AnnAssign | ast.arg):
            skipped.append(node.annotation)
        if isinstance(node, ast.keyword) and node.arg in _SAME_EITHER_WAY:
            skipped.append(node.value)
        stack += [child for child in ast.iter_child_nodes(node) if child not in skipped]


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    made: Any = deepcopy(node)
    match made:
        case ast.Compare(ops=[operator]):
            made.ops = [_COMPARISONS[type(operator)]()]
            yield made
        case ast.BinOp(op=operator) if type(operator) in _ARITHMETIC and not _is_text(made):
            made.op = _ARITHMETIC[type(operator)]()
            yield made
        case ast.BoolOp():
            made.op = ast.Or() if isinstance(made.op, ast.And) else ast.And()
            yield made
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield made.operand
        case ast.Constant(value=bool()):
            made.value = not made.value
            yield made
        case ast.Constant(value=int()) if abs(made.value) <= LARGEST:
            made.value += 1
            yield made
        case ast.Constant(value=float()):
            made.value = made.value * 2 or 1.0
            yield made
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()


def _is_text(node: ast.BinOp) -> bool:
    """Whether a sum is one of texts."""
    return any(
        isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Constant) and isinstance(part.value, str))
        for part in ast.walk(node)
    )


def reached(tree: Path, room: str) -> dict[str, Any]:
    """Run the room's tests and return their `seconds` by name, and the names that reach each line of each file."""
    found = tree / f"{room}.reached.json"
    code = f"from validity.mutants import record; record({room!r}, {str(found)!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=tree, env=_quiet(tree), capture_output=True, text=True)
    if not found.is_file():
        raise SystemExit(f"the tests of {room} do not pass as they are:\n{done.stdout[-3000:]}{done.stderr[-2000:]}")
    return dict(json.loads(found.read_text(encoding="utf-8")))


def tests_of(room: str) -> list[str]:
    """Return where a room's tests lie; the examples in its docstrings are among them."""
    return [f"tests/{room}", f"equivox/{room}"]


def record(room: str, output: str) -> None:
    """Run the tests of `room` in this process and write what each reaches; nothing is written if one fails."""
    import coverage
    import pytest

    watched = coverage.Coverage(source=[f"equivox/{room}"], data_file=None, config_file=False)
    seconds: dict[str, float] = {}

    class Recorder:
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
            watched.switch_context(item.nodeid)
            start = time.perf_counter()
            answer = yield
            seconds[item.nodeid] = time.perf_counter() - start
            return answer

    watched.start()
    code = pytest.main(
        ["-q", "-x", "-p", "no:cacheprovider", "--timeout", "0", "-m", "not long", *tests_of(room)],
        plugins=[Recorder()],
    )
    watched.stop()
    if code == 0:
        data = watched.get_data()
        files = {
            str(Path(file).relative_to(Path.cwd())): data.contexts_by_lineno(file) for file in data.measured_files()
        }
        Path(output).write_text(json.dumps({"seconds": seconds, "files": files}), encoding="utf-8")


def survives(mutant: Mutant, tree: Path, known: dict[str, Any]) -> bool:
    """Whether the room's tests let a mutant through; `tree` is as before at the end."""
    place = tree / mutant.path
    before = place.read_text(encoding="utf-8")
    place.write_text(mutant.source, encoding="utf-8")
    try:
        seconds = known["seconds"]
        there = known["files"].get(mutant.path, {}).get(str(mutant.line), [])
        near = sorted((name for name in there if name in seconds), key=lambda name: float(seconds[name]))
        return (not near or _pass(tree, near)) and _pass(tree, tests_of(mutant.room))
    finally:
        place.write_text(before, encoding="utf-8")


def _pass(tree: Path, tests: Sequence[str]) -> bool:
    """Whether tests pass; too many names for a command line are given in a file."""
    listed = tree / "named-tests.txt"
    listed.write_text("\n".join(tests), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "--timeout",
        "0",
        "-m",
        "not long",
        f"@{listed}",
    ]
    try:
        done = subprocess.run(command, cwd=tree, env=_quiet(tree), capture_output=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _quiet(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}


def main() -> None:
    """Print each mutant that the tests let through, and the share that they notice, by room."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=39)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rooms", nargs="+", default=ROOMS, choices=ROOMS)
    chosen = parser.parse_args()
    root = Path(__file__).resolve().parents[1]
    every = [
        mutant
        for room in chosen.rooms
        for path in sorted((root / "equivox" / room).rglob("*.py"))
        for mutant in mutants_of(path, room, root)
    ]
    drawn = random.Random(chosen.seed).sample(every, min(chosen.count, len(every)))
    print(f"{len(drawn)} of {len(every)} changes, seed {chosen.seed}", flush=True)
    with TemporaryDirectory() as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        copies = [_copy(root, Path(folder) / str(number)) for number in range(chosen.workers)]
        for copy in copies:
            trees.put(copy)

        def in_a_tree(work: Any, *given: Any) -> Any:
            tree = trees.get()
            try:
                return work(tree, *given)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(chosen.workers) as pool:
            known = dict(zip(chosen.rooms, pool.map(lambda room: in_a_tree(reached, room), chosen.rooms), strict=True))
            print("the rooms' tests pass as they are", flush=True)

            def tried(mutant: Mutant) -> bool:
                through = bool(in_a_tree(lambda tree: survives(mutant, tree, known[mutant.room])))
                if through:
                    print(f"{mutant.path}:{mutant.line}: {mutant.was}  →  {mutant.now}", flush=True)
                return through

            through = list(pool.map(tried, drawn))
    total, left = Counter(m.room for m in drawn), Counter(m.room for m, t in zip(drawn, through, strict=True) if t)
    for room in total:
        print(f"{room}: {total[room] - left[room]} of {total[room]} noticed")
    noticed = len(drawn) - sum(through)
    print(f"all: {noticed} of {len(drawn)} noticed, {100 * noticed / len(drawn):.1f} %")


def _copy(root: Path, to: Path) -> Path:
    """Return a copy of the tracked files of the tree, as they are now."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        source = root / name
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            (to / name).symlink_to(os.readlink(source))
        elif source.is_file():
            shutil.copy2(source, to / name)
    own = Path(__file__).resolve()
    shutil.copy2(own, to / own.relative_to(root))
    return to


if __name__ == "__main__":
    main()
