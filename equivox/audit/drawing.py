"""Which answers people label: drawn evenly from runs, shown without the group, the speaker, or the annotation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from equivox.annotate.model import prompt_text
from equivox.audit.stored import ANSWERS
from equivox.core.errors import UsageError, nearest
from equivox.core.lazy import NDArray, np, pc
from equivox.core.plain import split_by
from equivox.core.samples import UNANSWERED, Row, Samples
from equivox.core.scores import family_of
from equivox.core.segments import WHOLE, Segment, SegmentAnnotation
from equivox.core.task import OTHER, PLACEHOLDER, UNSTATED, Attribute, Column, Task, digest
from equivox.core.variants import asks_nothing
from equivox.run.declarations import read_tasks
from equivox.run.manifest import read_manifest
from equivox.run.scoring import families, open_samples, read_records, scored_with, scoring_samples
from equivox.run.store import Store, response_schema, stored_texts

PER = ("model", "task", "condition", "group")
"""The properties over which a sheet can be spread evenly, besides the metadata that the tasks keep."""

_STATUS = "status."
SEEN = ("parsed", "unparsed", "refused")
"""The statuses of a segment that the annotator answered about, readably or not."""
_NOBODY = Row(group="", cluster="", stratum="", status="parsed")

UNIFY = "unify"
"""The name of the stage in which wordings are counted as one."""

MEANING = Attribute(
    name="meaning", asks="a name of your own for what is meant; wordings that mean the same get the same"
)


@dataclass(frozen=True)
class Drawn:
    """One response on a sheet, under a name without meaning; `weight` is the number of responses it was drawn for.

    With `segment` it is what the annotator saw at one stage of the annotation: `text` is that, and `stage` its name.
    With `judged` the annotator's lists stand below it, and people say how good they are. A wording has the place and
    the cluster in which it was counted (`counted_as`). `columns` has what the prompt names of the corpus.
    """

    item: str
    run: Path
    model: str
    task: Task
    row: Row
    text: str = ""
    weight: float = 1.0
    segment: Segment | None = None
    stage: str = ""
    judged: bool = False
    counted_as: tuple[str, ...] = ()
    columns: Mapping[str, Column] = field(default_factory=dict)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes to be labelled."""
        if self.segment is None:
            return self.task.attributes
        stage = "" if self.stage == ANSWERS else self.stage
        asked = self.task.annotation.judged(stage) if self.judged else {}
        return shares_of(self.segment.attributes, asked, lists=bool(stage)) if asked else self.segment.attributes

    @property
    def prompt(self) -> str:
        """The prompt with its columns and the plan's metadata, such as the order of its options; none at a stage."""
        if self.segment is not None:
            return ""
        known = {**{name: str(value) for name, value in self.columns.items()}, **self.row.metadata}
        return PLACEHOLDER.sub(lambda match: known.get(match[1], match[0]), self.task.prompt.text)


_Candidate = tuple[str, Drawn, Samples, int]
"""A response that can be drawn, with its place in a hashed order, its task's samples and its number among them."""
_Among = Callable[[Task, Samples], "NDArray[np.bool_]"]
"""Function that returns which samples of a task can be drawn."""


def shares_of(attributes: Sequence[Attribute], asked: Mapping[str, str], *, lists: bool) -> tuple[Attribute, ...]:
    """Return what people are asked about what the annotator gave: each share of `asked`, of every attribute or list."""
    return tuple(
        Attribute(name=f"{attribute.name} {name}", asks=asks.format(attribute.asks))
        for attribute in attributes
        if attribute.is_list or (not lists and attribute.role != "refusal")
        for name, asks in asked.items()
    )


_INSTRUCTS = (
    r"(?i)\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instructions?|above|previous|prior|prompt|rules)\b"
    r"|<{3,}|>{3,}|\b(?:annotator|judge|grader|evaluator|labell?er)s?\b.{0,30}\b(?:must|should|please|answer|return|mark)\b"
    r"|[\"']refusal[\"']\s*:|```json"
)
"""Text that speaks to whoever reads the answer, or looks like the annotator's own reply (RE2)."""


def _list_instructing(folder: Path) -> set[str]:
    """Return the keys of the responses that give the annotator instructions."""
    stored = Store(folder / "responses", response_schema()).table(("key", "text"))
    instructs = pc.fill_null(pc.match_substring_regex(stored["text"], _INSTRUCTS), False)
    return set(stored["key"].filter(instructs).to_pylist())


def _candidates(
    folder: Path, per: Sequence[str], seed: int, annotator: str | None, among: _Among | None
) -> Iterator[tuple[tuple[str, ...], _Candidate]]:
    """Yield each answered response of a run once, with its values of `per`."""
    manifest = read_manifest(folder)
    tasks = [task for task in read_tasks(folder) if not asks_nothing(task)]
    opened = open_samples(folder, tasks, annotator or str(manifest["command"]["annotator"]))
    model = str(manifest["command"]["model"])
    seen: set[str] = set()
    instructing = _list_instructing(folder)
    for task in tasks:
        samples = opened[task.name]
        answered = ~samples.has_status(*UNANSWERED, "empty")
        if among is not None:
            answered &= among(task, samples)
        keys, groups = samples.keys, samples.groups.texts()
        kept = {name: samples.metadata(name).texts() for name in per if name not in PER}
        for number in answered.nonzero()[0].tolist():
            key = keys[number]
            if key in seen:
                continue
            seen.add(key)
            place = {
                "model": f"{model} {folder}",
                "task": task.name,
                "condition": task.condition,
                "group": groups[number],
                **{name: texts[number] for name, texts in kept.items()},
            }
            item = digest([seed, "item", model, key])[:12]
            one = Drawn(item, folder, model, task, replace(_NOBODY, key=key))
            # Few answers instruct the annotator, and they fool it most: they are cells of their own.
            yield (
                (*(place[name] for name in per), str(key in instructing)),
                (digest([seed, "draw", item]), one, samples, number),
            )


def draw(
    folders: Sequence[Path],
    *,
    n: int,
    per: Sequence[str],
    seed: int = 0,
    annotator: str | None = None,
    among: _Among | None = None,
) -> list[Drawn]:
    """Return `n` answered responses of every combination of `per`, in random order.

    As many of those that give the annotator instructions are drawn as well, as if these were a further combination.
    `among` returns which samples of a task can be drawn; by default all that were answered. A response that several
    tasks share is drawn once. The same runs, numbers and seed draw the same responses. UsageError for an unknown
    `per`, and if there are no answers; with `among` there may be none.
    """
    known = [*PER, *dict.fromkeys(name for folder in folders for task in read_tasks(folder) for name in task.metadata)]
    for name in per:
        if name not in known:
            raise UsageError(f"`per` names {', '.join(known)}; got {name!r}{nearest(name, known)}")
    cells: dict[tuple[str, ...], list[_Candidate]] = {}
    sizes: Counter[tuple[str, ...]] = Counter()
    for named, candidate in (found for folder in folders for found in _candidates(folder, per, seed, annotator, among)):
        sizes[named] += 1
        cell = cells.setdefault(named, [])
        cell.append(candidate)
        # A response that is not among the first n of its cell now can never enter them.
        if len(cell) > 4 * n:
            cell[:] = sorted(cell, key=itemgetter(0))[:n]
    weights = {named: sizes[named] / min(n, len(cell)) for named, cell in cells.items()}
    chosen = [
        (replace(one, weight=weights[named]), samples, number)
        for named, cell in cells.items()
        for _, one, samples, number in sorted(cell, key=itemgetter(0))[:n]
    ]
    if not chosen:
        if among is not None:
            return []
        raise UsageError(f"no response of {', '.join(map(str, folders))} can be shown: none was answered")
    texts = {folder: stored_texts(folder, [d.row.key for d, _, _ in chosen if d.run == folder]) for folder in folders}
    drawn = []
    for one, samples, number in chosen:
        (row,) = samples.take([number]).rows()
        drawn.append(replace(one, row=row, text=texts[one.run].get(row.key) or ""))
    return sorted(drawn, key=lambda one: one.item)


def _judged_answers(drawn: Sequence[Drawn]) -> list[Drawn]:
    """Return the answers that could be annotated, with what the annotator took from them below."""
    found = []
    for one in drawn:
        if one.task.annotation.stages():
            raise UsageError(f"{one.task.name} is annotated in stages; name one by `--stage` for `--judge`")
        if one.row.status == "parsed":
            segment = Segment(name=WHOLE, text=one.text, attributes=one.task.attributes)
            found.append(_with_values(replace(one, segment=segment, stage=ANSWERS), one.row.values))
    if not found:
        raise UsageError("the annotator could annotate none of these answers, so there is nothing to judge")
    return found


def draw_sheet(
    folders: Sequence[Path],
    stage: str | None,
    *,
    n: int,
    per: Sequence[str],
    seed: int = 0,
    annotator: str | None = None,
    judge: bool = False,
) -> list[Drawn]:
    """Return responses as `draw` does, or what the annotator saw at a stage of `n` for every combination of `per`.

    A response with several segments at the stage, such as two profiles, is there once for each. Of questions about
    findings `n` are drawn for every run, whatever `per` says: they belong to no response. With `judge` the annotator's
    lists stand below, and people are asked for their precision and recall. Of the stage in which wordings are merged,
    wordings are drawn. UsageError for an unknown stage, if the annotator answered nothing there, and for `judge`
    where it gave no lists.
    """
    if stage == UNIFY and all(map(_tables_of, folders)):
        return _draw_merged(folders, n=n, seed=seed, annotator=annotator)
    if stage is None:
        answers = draw(folders, n=n, per=per, seed=seed, annotator=annotator)
        return _judged_answers(answers) if judge else answers
    drawn: list[Drawn] = []
    of_responses: list[Path] = []
    for folder in folders:
        tasks = [task for task in read_tasks(folder) if not asks_nothing(task)]
        check_stage(stage, tasks, folder)
        if any(stage in task.annotation.stages() for task in tasks):
            of_responses.append(folder)
        if any(task.metric.follow_up and stage in task.metric.follow_up.stages for task in tasks):
            drawn += _questions(folder, tasks, stage, n, seed, annotator)
    if of_responses:
        among = partial(_having, stage)
        responses = draw(of_responses, n=n, per=per, seed=seed, annotator=annotator, among=among)
        for folder in of_responses:
            own = [one for one in responses if one.run == folder]
            texts = stored_texts(folder, [one.row.key for one in own])
            for one in own:
                for segment in segments_at(one.task, one.row, texts[one.row.key] or "", stage):
                    item = digest([seed, "item", one.item, segment.name])[:12]
                    at = replace(one, item=item, text=prompt_text(segment), segment=segment, stage=stage)
                    answer = one.row.segments[segment.name]
                    # Of what the annotator could read, its lists stand below the text.
                    listed = answer.status == "parsed" and any(a.is_list for a in segment.attributes)
                    drawn.append(_with_values(at, answer.values) if judge and listed else at)
    if judge:
        drawn = [one for one in drawn if one.judged]
        if not drawn:
            raise UsageError(f"the annotator gives no lists at the stage {stage!r}, so leave `--judge` out")
    if not drawn:
        raise UsageError(
            f"the annotator answered nothing at the stage {stage!r} of {', '.join(map(str, folders))}; name another "
            "stage or `--annotator`"
        )
    return sorted(drawn, key=lambda one: one.item)


def _with_values(one: Drawn, values: Mapping[str, Sequence[str]]) -> Drawn:
    """Return what was drawn with the annotator's values of what is judged below."""
    found = replace(one, judged=True)
    judged = {attribute.name.rpartition(" ")[0] for attribute in found.attributes}
    attributes = one.segment.attributes if one.segment is not None else ()
    listed = [
        f"- {a.name} ({a.asks}): {'; '.join(values.get(a.name, ())) or 'nothing'}"
        for a in attributes
        if a.name in judged
    ]
    return replace(found, text="\n".join([one.text, "", "What was listed:", *listed]))


def _having(stage: str, task: Task, samples: Samples) -> NDArray[np.bool_]:
    """Return which samples of a task have a segment at the stage that the annotator answered about."""
    found = np.zeros(len(samples), dtype=bool)
    if stage in task.annotation.stages():
        for column in samples.columns:
            name = column.removeprefix(_STATUS)
            if column != name and task.annotation.stage_of(name) == stage:
                found |= samples.has_status(*SEEN, segment=name)
    return found


def _questions(
    folder: Path, tasks: Sequence[Task], stage: str, n: int, seed: int, annotator: str | None
) -> list[Drawn]:
    manifest = read_manifest(folder)["command"]
    asked = questions_at(folder, tasks, annotator or str(manifest["annotator"]), stage)
    model = str(manifest["model"])
    found = {
        digest([seed, "item", model, str(folder), segment.digest])[:12]: (task, segment) for task, segment, _ in asked
    }
    chosen = sorted(found.items(), key=lambda entry: digest([seed, "draw", entry[0]]))[:n]
    return [
        Drawn(item, folder, model, task, _NOBODY, prompt_text(segment), len(found) / len(chosen), segment, stage)
        for item, (task, segment) in chosen
    ]


def _tables_of(folder: Path) -> dict[str, str]:
    """Return the name of the table of merged wordings of each family of a run that has one."""
    asking = [(task, task.metric.follow_up) for task in read_tasks(folder)]
    return {family_of(task.name): asked.merged for task, asked in asking if asked is not None and asked.merged}


def _draw_merged(folders: Sequence[Path], *, n: int, seed: int, annotator: str | None) -> list[Drawn]:
    """Return `n` wordings of every task and category, whole clusters at a time, in random order.

    A cluster is drawn whole, because wordings that are drawn one by one hardly ever share one; it is cut at `n`.
    UsageError if the runs have no wordings.
    """
    drawn: list[Drawn] = []
    for folder in folders:
        manifest = read_manifest(folder)["command"]
        name, model = annotator or str(manifest["annotator"]), str(manifest["model"])
        tasks = {task.name: task for task in read_tasks(folder)}
        rows = [
            row
            for family, table in _tables_of(folder).items()
            for row in read_records(folder, family, table, name) or ()
        ]
        for (task, category), own in split_by(rows, lambda row: (row["task"], row["category"])).items():
            chosen = sorted(own, key=lambda row: digest([seed, "draw", category, row["counts_as"], row["wording"]]))
            order = {
                cluster: digest([seed, "cluster", category, cluster]) for cluster in {row["counts_as"] for row in own}
            }
            chosen.sort(key=lambda row: order[row["counts_as"]])
            drawn += [_wording(folder, model, tasks[task], row, len(own) / n, seed) for row in chosen[:n]]
    if not drawn:
        raise UsageError(f"no wordings were found in {', '.join(map(str, folders))}; score the runs first")
    return sorted(drawn, key=lambda one: one.item)


def _wording(folder: Path, model: str, task: Task, row: Mapping[str, Any], weight: float, seed: int) -> Drawn:
    segment = Segment(name=UNIFY, text=f"{row['category']}: {row['wording']}", attributes=(MEANING,))
    item = digest([seed, "item", model, str(folder), task.name, row["category"], row["wording"]])[:12]
    counted = (f"{task.name} {row['category']}", str(row["counts_as"]))
    return Drawn(item, folder, model, task, _NOBODY, segment.text, max(1.0, weight), segment, UNIFY, counted_as=counted)


def check_stage(stage: str, tasks: Sequence[Task], run: Path) -> None:
    """Raise UsageError for a stage that no task of the run has, with those that there are."""
    known: dict[str, str] = {}
    for task in tasks:
        follow_up = task.metric.follow_up
        known |= {**task.annotation.stages(), **(follow_up.stages if follow_up else {})}
    if stage not in known:
        told = ", ".join(known) if known else "none: its responses are annotated as a whole, so leave `--stage` out"
        raise UsageError(f"{run} has no stage {stage!r}{nearest(stage, known)}; known: {told}")


def segments_at(task: Task, row: Row, text: str, stage: str) -> list[Segment]:
    """Return the segments of a response at a stage, as the annotator got them; only those that it answered about."""
    scheme = task.annotation
    done: dict[str, SegmentAnnotation] = {}
    found: dict[str, Segment] = {}
    while True:
        new = {
            segment.name: segment
            for segment in scheme.segments(task, row.metadata, text, done)
            if segment.name not in done and segment.name in row.segments
        }
        if not new:
            break
        found |= new
        done |= {name: row.segments[name] for name in new}
    return [
        segment
        for name, segment in found.items()
        if scheme.stage_of(name) == stage and row.segments[name].status in SEEN
    ]


def questions_at(
    folder: Path, tasks: Sequence[Task], annotator: str, stage: str
) -> list[tuple[Task, Segment, SegmentAnnotation]]:
    """Return the questions about findings of a kind that the annotator answered, each once, with a task of its family.

    Findings are those of the options with which the run was scored. DamageError if its scores cannot be read.
    """
    options = scored_with(folder, annotator)
    samples, _ = scoring_samples(folder, tasks, annotator, options)
    found: dict[str, tuple[Task, Segment, SegmentAnnotation]] = {}
    for members in families(tasks).values():
        follow_up = members[0].metric.follow_up
        if follow_up is None or stage not in follow_up.stages:
            continue
        for segment in follow_up.questions([(task, samples[task.name]) for task in members], options):
            answer = samples[members[0].name].follow_up(segment)
            if segment.name == stage and answer is not None and answer.status in SEEN:
                found.setdefault(segment.digest, (members[0], segment, answer))
    return list(found.values())


def choices_of(attribute: Attribute) -> tuple[str, ...]:
    """Return the values that people choose from; none where they write."""
    if attribute.role == "refusal" or not attribute.options:
        return attribute.options
    return (*attribute.options, OTHER, UNSTATED)
