"""Dialogues: each turn is asked as soon as the answers before it are there.

A turn that follows goes before new dialogues, so that a server still has what was said before in its cache. The last
dialogues are begun before that: where no new one is left, the engine would wait for answers that others follow.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from equivox.core.requests import Request, Response
from equivox.run.plan import Plan
from equivox.run.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Send = Callable[[Iterable[Request]], Iterator[Response]]
"""Function that has an engine answer requests, which it takes one by one as it has room for them."""


def dialogues(plan: Plan, rows: NDArray[np.int64], store: Store, send: Send) -> Iterator[Response]:
    """Yield the responses to some rows of a plan, each turn with the answers before it.

    `store` has the answers from before this call. A turn that was not answered ends its dialogue: whatever would follow
    it fails with it, and is not sent.
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
        """Failures of rows whose dialogue ended before this call."""
        self._after: dict[str, list[int]] = defaultdict(list)
        """The rows that wait for the answer with a key."""
        asked = dict(zip(plan.table["key"].take(rows).to_pylist(), rows.tolist(), strict=True))
        self._follows = dict(zip(asked.values(), plan.follows(rows), strict=True))
        needed = sorted({key for keys in self._follows.values() for key in keys if key not in asked})
        stored = store.where("key", needed, ("key", "text")).to_pylist() if needed else []
        self._answers = {one["key"]: one["text"] for one in stored if one["text"] is not None}
        for row, keys in self._follows.items():
            told = (turn for turn, key in enumerate(keys, 1) if key not in asked and key not in self._answers)
            lacking = next(told, None)
            if lacking is not None:
                self.over.append(self._failed(row, lacking))
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
        """Let what follows a response be asked; yield the failures of what cannot, because it is none."""
        waiting = self._after.pop(response.key, [])
        if response.error is None and response.text is not None:
            if waiting:
                self._answers[response.key] = response.text
            self.ready.extend(waiting)
            return
        for row in waiting:
            over = self._failed(row, list(self._follows[row]).index(response.key) + 1)
            yield over
            yield from self.answered(over)

    def _failed(self, row: int, turn: int) -> Response:
        key = self.plan.table["key"][row].as_py()
        return Response(key=key, text=None, error=f"turn {turn} of its dialogue was not answered")
