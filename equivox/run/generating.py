"""The generate stage: send every request without a stored response, and store each response as it arrives.

In dialogues each turn is asked as soon as the answers before it are there. A turn that follows goes before new
dialogues, so that a server still has what was said before in its cache. The last dialogues are begun before that: where
no new one is left, the engine would wait for answers that others follow.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from equivox.core.endings import WITHHELD, is_withheld, settle
from equivox.core.errors import RunError
from equivox.core.lazy import NDArray, np, pa, pc
from equivox.core.notes import ErrorKind
from equivox.core.plugins import told_in_one_line
from equivox.core.progress import STOP_AFTER, Progress, no_progress, until_outage
from equivox.core.redact import cleaned
from equivox.core.requests import Request, Response
from equivox.engines import Engine
from equivox.run.manifest import read_manifest, write_manifest
from equivox.run.plan import Plan
from equivox.run.store import Store, keep_sound, response_schema

Send = Callable[[Iterable[Request]], Iterator[Response]]
"""Function that has an engine answer requests, which it takes one by one as it has room for them."""


def dialogues(plan: Plan, rows: NDArray[np.int64], store: Store, send: Send) -> Iterator[Response]:
    """Yield the responses to some rows of a plan, each turn with the answers before it.

    `store` has the answers from before this call. A turn that was not answered ends its dialogue: whatever would follow
    it fails with it, or is withheld with it, and is not sent.
    """
    open_ = _Open(plan, rows, store)
    yield from open_.over
    while open_.fresh or open_.ready:
        for response in send(open_.requests()):
            open_.sent -= 1
            yield response
            yield from open_.answered(response)


_BLOCK = 32
"""Requests that are made at a time; what follows an answer waits for at most as many."""


class _Open:
    """The dialogues that are not over: what can be asked now, and what waits for which answer."""

    def __init__(self, plan: Plan, rows: NDArray[np.int64], store: Store) -> None:
        self.plan = plan
        self.fresh: deque[int] = deque()
        """Rows without a turn before them that is asked in this call."""
        self.ready: deque[int] = deque()
        """Rows whose last answer has just come."""
        self.sent = 0
        """The number of requests that were taken and are not answered."""
        self.over: list[Response] = []
        """Responses to rows whose dialogue ended before this call."""
        self._after: dict[str, list[int]] = defaultdict(list)
        """The rows that wait for the answer with a key."""
        asked = dict(zip(plan.table["key"].take(rows).to_pylist(), rows.tolist(), strict=True))
        self._follows = dict(zip(asked.values(), plan.follows(rows), strict=True))
        needed = sorted({key for keys in self._follows.values() for key in keys if key not in asked})
        stored = store.where("key", needed, ("key", "text", "finish_reason")).to_pylist() if needed else []
        withheld = {one["key"] for one in stored if is_withheld(one["text"], one["finish_reason"])}
        answered = (one for one in stored if one["text"] is not None and one["key"] not in withheld)
        self._answers = {one["key"]: one["text"] for one in answered}
        for row, keys in self._follows.items():
            told = (turn for turn, key in enumerate(keys, 1) if key not in asked and key not in self._answers)
            lacking = next(told, None)
            if lacking is not None:
                self.over.append(self._ended(row, lacking, withheld=keys[lacking - 1] in withheld))
            elif keys and keys[-1] in asked:
                self._after[keys[-1]].append(row)
            else:
                self.fresh.append(row)

    def requests(self) -> Iterator[Request]:
        """Yield what can be asked now; it ends where everything else waits for an answer."""
        while waiting := self.ready or self.fresh:
            if 0 < len(self.fresh) <= self.sent:
                waiting = self.fresh
            # Requests are made in blocks: one by one they cost three times as much.
            rows = [waiting.popleft() for _ in range(min(len(waiting), _BLOCK))]
            for request in self.plan.requests(rows, self._answers):
                self.sent += 1
                yield request

    def answered(self, response: Response) -> Iterator[Response]:
        """Let what follows a response be asked; yield the responses to what cannot, because it is none."""
        waiting = self._after.pop(response.key, [])
        withheld = is_withheld(response.text, response.finish_reason)
        if response.error is None and response.text is not None and not withheld:
            if waiting:
                self._answers[response.key] = response.text
            self.ready.extend(waiting)
            return
        for row in waiting:
            over = self._ended(row, list(self._follows[row]).index(response.key) + 1, withheld=withheld)
            yield over
            yield from self.answered(over)

    def _ended(self, row: int, turn: int, *, withheld: bool) -> Response:
        key, media = (self.plan.table[name][row].as_py() for name in ("key", "media_sha256"))
        if withheld:
            return Response(key=key, text="", finish_reason=WITHHELD, media_items=len(media or ()))
        return Response(key=key, text=None, error=f"turn {turn} of its dialogue was not answered")


IMPORTED = "imported"
"""The engine name of responses from elsewhere; `equivox.run.importing` makes such runs."""


def generate(
    folder: Path,
    plan: Plan,
    engine: Engine,
    *,
    retry_failed: bool = False,
    stop_after: int = STOP_AFTER,
    progress: Progress = no_progress,
) -> None:
    """Generate the responses that the store lacks; each is stored as soon as it is finished.

    A request whose media cannot be used is never sent: a failed response is stored for it. Raises RunError when the
    engine did not use the media it was given, because such answers say nothing about the person; responses that were
    made elsewhere are not checked for it. Raises RunError too for an outage of the engine (`until_outage`).
    """
    pending = pending_rows(folder, plan, retry_failed=retry_failed)
    total = len(plan.distinct)
    finished = total - len(pending)
    failed = 0
    progress(engine.event("generate", finished, total, failed=failed))
    unanswered = dict(zip(plan.table["key"].take(pending).to_pylist(), pending.tolist(), strict=True))
    proves_arrival = engine.identity.engine != IMPORTED
    media_counts = pc.list_value_length(plan.table["media_sha256"]).to_numpy()
    with Store(folder / "responses", response_schema()) as store:
        answers = _answers(plan, pending, engine, store)
        # No other request that failed before is asked again.
        before = store.table(("key", "error")).drop_null()["key"].to_pylist() if retry_failed else ()
        for response in until_outage(answers, engine.identity.model, stop_after, failed_before=frozenset(before)):
            row = unanswered.pop(response.key, None)
            if row is None:
                asked = pc.is_in(pa.scalar(response.key), value_set=plan.table["key"].combine_chunks()).as_py()
                what = "answered a request twice" if asked else "answered a request that was not made"
                raise RunError(f"{engine.named} {what} ({response.key[:12]}); stored responses are kept")
            record = store.fitted({**vars(response), "sound": None})
            if record["error"] is not None:
                record["error"] = cleaned(record["error"])
            elif proves_arrival and record["media_items"] < media_counts[row]:
                _refuse_arrival(plan.request(row), record, engine)
            if isinstance(response.sound, bytes):
                record["sound"] = keep_sound(folder, response.sound)
            store.keep(record)
            finished += 1
            failed += record["error"] is not None
            progress(engine.event("generate", finished, total, failed=failed))
        for key in sorted(unanswered):
            store.append(vars(Response(key=key, text=None, error="the engine gave no response")))


def pending_rows(folder: Path, plan: Plan, *, retry_failed: bool) -> NDArray[np.int64]:
    """Return the rows of `plan` whose requests have no response in `folder`, each key once."""
    stored = Store(folder / "responses", response_schema()).table(("key", "error"))
    if retry_failed:
        stored = stored.filter(stored["error"].is_null())
    return plan.pending(stored["key"].combine_chunks())


def _answers(plan: Plan, pending: NDArray[np.int64], engine: Engine, store: Store) -> Iterator[Response]:
    """Yield the responses to the pending rows; those whose media cannot be used are never sent."""
    usable = plan.usable[pending]
    for row in pending[~usable].tolist():
        yield Response(
            key=plan.request(row).key,
            text=None,
            error=f"unusable media: {plan.problem(row)}",
            error_kind=ErrorKind.MEDIA,
        )
    if plan.has_turns:
        yield from dialogues(plan, pending[usable], store, lambda requests: _sent(requests, engine))
    elif sendable := plan.requests(pending[usable]):  # the model is not loaded without need
        yield from _sent(sendable, engine)


def _sent(sendable: Iterable[Request], engine: Engine) -> Iterator[Response]:
    """Yield what the engine answers to requests; RunError, in one line, for anything else that it does."""
    with told_in_one_line(engine.named):
        for response in engine.generate(sendable):
            if not (isinstance(response, Response) and isinstance(response.key, str)):
                raise RunError(f"{engine.named} yielded {response!r:.60}, not a Response; stored responses are kept")
            if not isinstance(response.text, str | None):  # NaN is a cell without an answer, not the answer "nan"
                error = response.error or f"the engine gave {type(response.text).__name__}, not text"
                response = replace(response, text=None, error=error)
            yield settle(response)


def _refuse_arrival(request: Request, stored: Mapping[str, Any], engine: Engine) -> None:
    kinds = " and ".join(sorted({part.kind for part in request.media}))
    if stored["media_tokens"] is None and "trust_media" in engine.identity.settings:
        raise RunError(
            f"the server of {engine.identity.model} counts no tokens for {request.sample_id}, so nothing proves that "
            f"the {kinds} arrived; let the server report its usage, or set trust_media=true to continue without proof"
        )
    raise RunError(
        f"{engine.identity.model} used {stored['media_items']} of {len(request.media)} media items of "
        f"{request.sample_id}: the {kinds} did not arrive; "
        f"use a model and an engine that take {kinds}"
    )


def count_failures(folder: Path) -> Counter[str]:
    """Count the stored failed responses of the run in `folder` by their errors."""
    errors = Store(folder / "responses", response_schema()).table(("error",))["error"].drop_null()
    return Counter(errors.to_pylist())


def count_failure_kinds(folder: Path) -> Counter[str | None]:
    """Count the stored failed responses of the run in `folder` by the kinds of their errors."""
    table = Store(folder / "responses", response_schema()).table(("error", "error_kind"))
    return Counter(table.filter(table["error"].is_valid())["error_kind"].to_pylist())


def note_served_models(folder: Path, engine: Engine, annotator: str = "") -> None:
    """Note in the manifest under which names a server answered, if it says so and not by the name it was asked for.

    `annotator` is the one whose engine it is; empty for the run's model.
    """
    with told_in_one_line(engine.named):
        names = [engine.served_as] if isinstance(engine.served_as, str) else engine.served_as
        served = set(map(str, names))
    manifest = read_manifest(folder)
    annotators = manifest.get("annotators_served_as", {})
    known = annotators.get(annotator, []) if annotator else manifest.get("served_as", [])
    if served - {engine.identity.model, *known}:
        names = sorted({*served, *known})
        noted = {"annotators_served_as": {**annotators, annotator: names}} if annotator else {"served_as": names}
        write_manifest(folder, manifest | noted)
