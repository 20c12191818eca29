"""Kills runs at random moments and counts what was lost: `python -m benchmarks.kills [100]`.

The command itself runs in a process of its own, with a simulated model and with a server on this machine, and is
killed (SIGKILL) after a random time; half of the runs are killed once more while they resume. Then the same command
ends the run. Counted over all points: records that were on disk at a kill and are not there, or not the same, at the
end; records stored twice; final tables that differ from those of a run that nobody killed; and requests that the
server answered more than once, beside the most that can have been in flight.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from equivox.core.files import read_document
from equivox.run.store import Store, annotation_schema, response_schema

TASKS = "badf_two:gender"
CONCURRENCY = 8
PRELOAD = [
    "equivox.cli.run_commands",
    "equivox.run.pipeline",
    "equivox.engines.endpoint",
    "equivox.tasks.badf",
    "equivox.metrics.badf",
    "openai",
    "scipy.stats",
    "pandas",
    "pyarrow.parquet",
    "pydantic",
    "filelock",
    "typer",
]
WORDS = ("a baker from the harbour", "a doctor in the old town", "a teacher who sings", "a pilot with a garden")


class Server:
    """An OpenAI-compatible server whose answer depends on the question alone; it counts how often each was asked."""

    def __init__(self) -> None:
        self.answered: Counter[str] = Counter()
        lock, answered = threading.Lock(), self.answered

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                content = body["messages"][0]["content"]
                text = content if isinstance(content, str) else content[-1]["text"]
                key = hashlib.sha256(f"{text} {body.get('seed')}".encode()).hexdigest()
                time.sleep(0.002)
                answer = " ".join(WORDS[int(key[i], 16) % len(WORDS)] for i in range(4))
                usage = {"prompt_tokens": len(text.split()), "completion_tokens": 9, "total_tokens": 18}
                message = {"role": "assistant", "content": answer}
                document = {
                    "id": "1", "object": "chat.completion", "created": 1, "model": body["model"], "usage": usage,
                    "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                }  # fmt: skip
                data = json.dumps(document).encode()
                try:
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    return
                if text != "Hello.":
                    with lock:
                        answered[key] += 1

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, request: object, client_address: object) -> None:
                """Say nothing of connections that a kill broke."""

        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


def run_command(arguments: Sequence[str]) -> None:
    """Run the command line in this process, silently, with shards of 64 records; exit with its code."""
    from equivox import cli

    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    (Store.__init__.__kwdefaults__ or {})["shard_rows"] = 64
    os._exit(cli.run(list(arguments)))


def stored(folder: Path) -> dict[str, dict[str, Any]]:
    """Return every response and annotation on disk, by its place and key."""
    found = {}
    for name, schema in (("responses", response_schema()), ("annotations/rules", annotation_schema())):
        found |= {f"{name} {record['key']}": record for record in Store(folder / name, schema).records()}
    return found


def raw_count(folder: Path) -> int:
    """Count the stored records without looking for the latest of each key."""
    count = 0
    for name, schema in (("responses", response_schema()), ("annotations/rules", annotation_schema())):
        store = Store(folder / name, schema)
        count += store._all(schema).num_rows
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("points", nargs="?", type=int, default=100)
    points = parser.parse_args().points
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    server = Server()
    rng = random.Random(16)
    models = {
        "simulated": "simulated:random,fail=0.02",
        "endpoint": f"endpoint:model_name=m,base_url={server.url},max_concurrency={CONCURRENCY},trust_media=true",
    }
    with tempfile.TemporaryDirectory() as scratch:
        for name, model in models.items():

            def arguments(folder: Path, model: str = model) -> list[str]:
                options = ["--data", "sample", "--limit", "60", "--scoring", "n_resamples=99", "--annotator", "rules"]
                return ["run", model, TASKS, *options, "--output", str(folder)]

            def start(folder: Path) -> Any:
                process = context.Process(target=run_command, args=(arguments(folder),))
                process.start()
                return process

            whole = Path(scratch) / name / "whole"
            for attempt in range(2):  # the first one pays for imports
                folder = Path(scratch) / name / f"warm{attempt}"
                begun = time.monotonic()
                process = start(folder if attempt == 0 else whole)
                process.join()
                seconds = time.monotonic() - begun
            expected, scores = stored(whole), read_document(whole / "scores.json")
            lost = changed = doubled = different = kills = again = most = 0
            for point in range(points):
                folder = Path(scratch) / name / str(point)
                server.answered.clear()
                before: dict[str, dict[str, Any]] = {}
                for _ in range(1 + point % 2):
                    process = start(folder)
                    time.sleep(rng.uniform(0.02, seconds))
                    process.kill()
                    process.join()
                    kills += 1
                    before |= stored(folder)
                process = start(folder)
                process.join()
                after = stored(folder)
                lost += len(before.keys() - after.keys())
                changed += sum(after[key] != record for key, record in before.items() if key in after)
                doubled += raw_count(folder) - len(after)
                different += after != expected or read_document(folder / "scores.json")["scores"] != scores["scores"]
                asked_again = sum(count - 1 for count in server.answered.values())
                again += asked_again
                most = max(most, asked_again)
            in_flight = f", at most {most} in one run ({2 * CONCURRENCY} in flight a kill)" if again else ""
            print(
                f"{name}: {points} runs of {len(expected)} records and {seconds:.1f} s, {kills} kills: {lost} lost, "
                f"{changed} changed, {doubled} doubled, {different} final tables differ, {again} answers asked "
                f"again{in_flight}",
                flush=True,
            )


if __name__ == "__main__":
    main()
