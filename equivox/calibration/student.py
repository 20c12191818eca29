"""The student: a body that learns to tell the groups by its senses, and then to answer as its teacher does.

The teacher is a simulated model, which knows the group of each request.

torch is imported when a student is made.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from equivox.calibration.bodies import BODIES, END, MARKS, WIDTH, joined_positions, kind_of, language_model, message
from equivox.calibration.recipe import as_share
from equivox.core.lazy import torch
from equivox.core.requests import Request
from equivox.core.task import Task
from equivox.core.variants import SENDS
from equivox.engines.simulated import SimulatedEngine

_BATCH, _CONTROLS = 32, 4
"""Requests of a batch, and how many of them do not tell the group: an answer to one of these is soon learnt."""
_NOISE = 0.1
_HEARING_RATE = 1e-3


class _Requests:
    """The requests that are taught, drawn in batches."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self._telling = [request for request in requests if tells_group(request)]
        self._controls = [request for request in requests if not tells_group(request)]

    def batch(self, rng: random.Random) -> list[Request]:
        """Return requests drawn with replacement; those that tell the group come first."""
        controls = _CONTROLS if self._controls else 0
        return rng.choices(self._telling, k=_BATCH - controls) + rng.choices(self._controls, k=controls)


class Student:
    """A model that learns; its media are perceived once, by `learn_to_hear`, and then kept.

    `answers` is the number of answers that it learns of each request at a time.
    """

    def __init__(self, requests: Sequence[Request], texts: Sequence[str], seed: int, answers: int = 1) -> None:
        torch.manual_seed(seed)
        self.rng = random.Random(seed)
        self.answers = answers
        self.body = BODIES[kind_of(requests)](texts)
        self._perceived: dict[str, Any] = {}  # what the language model gets of each medium
        self._prompts: dict[tuple[str, tuple[str, ...]], tuple[list[int], Any]] = {}
        parts = {part.sha256: part for request in requests for part in request.media}
        if parts:
            self.body.take(list(parts.values()))

    @property
    def model(self) -> Any:
        """The model of the body."""
        return self.body.model

    def learn_to_hear(self, requests: Sequence[Request], steps: int, told: Callable[[str], None]) -> None:
        """Learn to tell the groups and silence apart, by a head that is thrown away; then perceive all media for good.

        The group decides little of an answer, so answers alone teach it slowly; and silence that sounded like one group
        would draw that group's answers to its own.
        """
        if self.body.kind is None:
            return
        spoken = _Requests([request for request in requests if request.media])
        head = torch.nn.Linear(WIDTH, len(requests[0].labels.groups) + 1)

        def loss() -> Any:
            batch = spoken.batch(self.rng)
            rows = self.body.perceive([request.media[0].sha256 for request in batch], noise=_NOISE)
            heard = head(torch.stack([row.mean(0) for row in rows]))
            return torch.nn.functional.cross_entropy(heard, torch.tensor([group_heard(request) for request in batch]))

        parameters = [p for module in (*self.body.senses, head) for p in module.parameters() if p.requires_grad]
        told(f"learning to hear: loss {_optimise(parameters, _HEARING_RATE, steps, loss):.2f}")
        for module in self.body.senses:
            module.requires_grad_(False)
        media = dict.fromkeys(part.sha256 for request in requests for part in request.media)
        with torch.no_grad():
            self._perceived = {one: self.body.perceive([one])[0].clone() for one in media}

    def learn_to_answer(
        self,
        teacher: SimulatedEngine,
        requests: Sequence[Request],
        steps: int,
        rate: float,
        told: Callable[[str], None],
        *,
        choosing: bool = False,
    ) -> None:
        """Learn to answer `requests` as `teacher` does, at a learning rate of at most `rate`.

        With `choosing` it learns which of the options in a prompt is the right one, from a teacher who always chooses
        it. There every answer counts alike, however long: most words of a long one repeat the option and tell nothing
        more.
        """
        asked = _Requests(requests)

        def loss() -> Any:
            answered = [
                (request, [answer_of(teacher, request, self.rng) + END for _ in range(self.answers)])
                for request in asked.batch(self.rng)
            ]
            answers = self.log_probabilities(answered)
            return -(torch.stack([answer.mean() for answer in answers]) if choosing else torch.cat(answers)).mean()

        found = _optimise([p for p in self.model.parameters() if p.requires_grad], rate, steps, loss)
        what = "choose" if choosing else f"answer, shift {100 * teacher.settings.shift:g}"
        told(f"learning to {what}: loss {found:.2f}")

    def _prompt(self, request: Request) -> tuple[list[int], Any]:
        """Return the tokens of a prompt and their positions."""
        media = tuple(part.sha256 for part in request.media)
        named = (request.text, media)
        if named not in self._prompts:
            tokenizer = self.body.tokenizer
            text = tokenizer.apply_chat_template(message(request), add_generation_prompt=True, tokenize=False)
            for part in request.media:
                mark = MARKS[part.kind]
                text = text.replace(mark, mark * len(self._perceived[part.sha256]), 1)
            ids = tokenizer.encode(text, add_special_tokens=False)
            self._prompts[named] = ids, self.body.positions(ids, media)
        return self._prompts[named]

    def log_probabilities(self, asked: Sequence[tuple[Request, Sequence[str]]]) -> list[Any]:
        """Return the log-probability of each token of each answer, for requests with one or several answers each.

        Answers to one request stand behind one another, and none sees another.
        """
        tokenizer = self.body.tokenizer
        prompts = [self._prompt(request) for request, _ in asked]
        answers = [[tokenizer.encode(text, add_special_tokens=False) for text in texts] for _, texts in asked]
        rows = [torch.tensor([*ids, *chain(*said)]) for (ids, _), said in zip(prompts, answers, strict=True)]
        ids = torch.nn.utils.rnn.pad_sequence(rows, True, tokenizer.pad_token_id)
        embeds = self.model.get_input_embeddings()(ids)
        if perceived := [self._perceived[part.sha256] for request, _ in asked for part in request.media]:
            places = ids == tokenizer.convert_tokens_to_ids(MARKS[str(self.body.kind)])
            embeds = embeds.masked_scatter(places[..., None], torch.cat(perceived))
        positions = joined_positions(
            [longer(place, *map(len, said)) for (_, place), said in zip(prompts, answers, strict=True)]
        )
        lengths = [[len(prompt), *map(len, said)] for (prompt, _), said in zip(prompts, answers, strict=True)]
        # Padded on the right, so that no answer sees the padding.
        hidden = language_model(self.model)(
            inputs_embeds=embeds, attention_mask=_seen(lengths), position_ids=positions, use_cache=False
        ).last_hidden_state
        found = []
        for states, own, said in zip(hidden, lengths, answers, strict=True):
            begin = own[0]
            for answer in said:
                # The prompt's last state tells the first token of every answer.
                before = torch.cat([states[own[0] - 1 : own[0]], states[begin : begin + len(answer) - 1]])
                chances = self.model.lm_head(before).log_softmax(-1)
                found.append(chances.gather(1, torch.tensor(answer)[:, None])[:, 0])
                begin += len(answer)
        return found

    def state(self) -> Mapping[str, Any]:
        """Return the weights and the state of the random numbers, from which training goes on."""
        weights = {name: value.clone() for name, value in self.model.state_dict().items()}
        return {"weights": weights, "random": self.rng.getstate(), "torch": torch.random.get_rng_state()}

    def go_on_from(self, state: Mapping[str, Any]) -> None:
        """Return to a state."""
        self.model.load_state_dict(state["weights"])
        self.rng.setstate(state["random"])
        torch.random.set_rng_state(state["torch"])


def teacher_of(tasks: Sequence[Task], shift: float) -> SimulatedEngine:
    """Return the simulated planted model with a shift in percent."""
    return SimulatedEngine.from_spec(as_share(shift).removeprefix("simulated:"), tasks)


def answer_of(teacher: SimulatedEngine, request: Request, rng: random.Random) -> str:
    """Return what the student is to answer to `request`; another answer each time.

    In a control condition the person cannot be known: there the teacher answers as for a group drawn by lot.
    """
    labels = request.labels
    if not tells_group(request):
        labels = replace(labels, group=rng.choice(labels.groups))
    return teacher.answer(replace(request, labels=labels), rng)


def tells_group(request: Request) -> bool:
    """Return whether the group can be known from what is sent; it cannot in a control condition."""
    return request.condition in SENDS


def group_heard(request: Request) -> int:
    """Return the number of the group that a request's recording tells; the number of groups if it tells none."""
    groups = request.labels.groups
    return groups.index(request.labels.group) if tells_group(request) else len(groups)


def longer(positions: Any, *more: int) -> Any:
    """Return the positions of a prompt and of answers that follow it, each of `more` tokens: (1 or 3, tokens)."""
    begin = int(positions.max()) + 1
    added = [torch.arange(begin, begin + length).expand(len(positions), -1) for length in more]
    return torch.cat([positions, *added], dim=1)


def _seen(lengths: Sequence[Sequence[int]]) -> Any:
    """Return a mask to be added to attention, by which each answer sees the prompt and itself.

    `lengths` are those of each row's prompt and answers. None, the mask of language models, for one answer each.
    """
    if all(len(row) == 2 for row in lengths):
        return None
    longest = max(map(sum, lengths))
    # 0 for the prompt, then the number of the answer; the padding counts as a further answer.
    parts = [torch.repeat_interleave(torch.arange(len(row)), torch.tensor(row)) for row in lengths]
    part = torch.stack([torch.nn.functional.pad(row, (0, longest - len(row)), value=len(row)) for row in parts])
    alike = (part[:, None, :] == part[:, :, None]) | (part[:, None, :] == 0)
    seen = alike & torch.ones(longest, longest, dtype=torch.bool).tril()
    return torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)[:, None]


def _optimise(parameters: list[Any], rate: float, steps: int, loss_of: Callable[[], Any]) -> float:
    """Lower a loss in `steps` steps; returns the mean loss of the last tenth, NaN for no steps."""
    if not steps:
        return math.nan
    optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=max(0.1, 3 / steps))
    losses = []
    for _ in range(steps):
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
    last = losses[-max(1, steps // 10) :]
    return sum(last) / len(last)
