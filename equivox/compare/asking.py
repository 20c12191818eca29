"""Find differences in generation settings that make two runs incomparable."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equivox.core.files import read_document
from equivox.core.hashing import digest
from equivox.core.lazy import pc
from equivox.core.redact import redacted_text
from equivox.core.scores import unusual_options
from equivox.core.task import Task
from equivox.run.manifest import annotator_answered, read_manifest
from equivox.run.plan import read_plan
from equivox.run.scoring import scores_path
from equivox.run.store import Store, annotators_of, response_schema, stored_annotator

if TYPE_CHECKING:
    from equivox.compare.runs import ComparedRun

ASKED_BY = ("generation_parameters", "extra_body", "chat_template", "chat_template_kwargs", "system_prompt", "patch")
"""The settings of an engine that change how a model is asked rather than which one answers."""
OF_THE_MODEL = frozenset(
    """
    stop stop_tokens stop_token_ids reasoning reasoning_effort thinking thinking_budget thinking_level enable_thinking
    include_reasoning safety_settings max_connections max_retries timeout attempt_timeout provider
    service_tier store user
    """.split()  # noqa: SIM905
)
"""What is set in them for some models and not for others that are asked alike: how they end and think, are reached."""
_SAMPLED = {"max_tokens": "max_new_tokens", "max_completion_tokens": "max_new_tokens"}
"""Other names of what a task's sampling sets."""


def asked_apart(identity: Mapping[str, Any], tasks: Sequence[Task]) -> Iterator[str]:
    """Yield, in words, each setting by which the model of a run was asked otherwise than its `tasks` declare.

    `identity` is that of the run's manifest.
    """
    for name, given in _settings(identity).items():
        if isinstance(given, Mapping):
            given = {key: value for key, value in given.items() if not _declared(key, value, tasks)}
        if given and name != "chat_template":  # without which some models take no messages
            yield f"asked with `{name}` {given}"


def _declared(key: str, value: Any, tasks: Sequence[Task]) -> bool:
    name = _SAMPLED.get(key, key)
    sampled = [vars(task.sampling).get(name) for task in tasks]
    if name == "max_new_tokens" and sampled and isinstance(value, int):  # with more tokens fewer answers are cut off
        return all(value >= task.sampling.max_new_tokens for task in tasks)
    return key in OF_THE_MODEL or bool(sampled and all(own == value for own in sampled))


def judge_of(folder: Path, annotator: str) -> str:
    """Return the beginning of a hash of what annotated a scored run, wherever it is served; names say less."""
    identity = read_document(scores_path(folder, annotator))["annotator"]
    settings = dict(identity["settings"])
    if engine := settings.get("engine"):
        served = {name: value for name, value in engine.get("settings", {}).items() if name != "base_url"}
        settings["engine"] = {**engine, "settings": served, "digest": ""}
    answered = annotator_answered(read_manifest(folder), annotator)
    return digest([identity["version"], settings, *filter(None, [answered])])[:8]


def named_annotator(run: ComparedRun) -> str:
    """Return the annotator of a run, with the names by which its server answered, if by others than it was asked."""
    return run.annotator + (f" (answered by {run.annotator_answered})" if run.annotator_answered else "")


def judges_itself(folder: Path, annotator: str) -> bool:
    """Return whether the annotator of a run is the model that it annotates, by the name of both."""
    if annotator not in annotators_of(folder):
        return False
    engine = stored_annotator(folder, annotator).settings.get("engine") or {}
    asked = read_manifest(folder)["identity"]["model"].get("model")
    return bool(asked) and str(engine.get("model", "")).casefold() == str(asked).casefold()


def asked_again(folder: Path) -> dict[str, float]:
    """Return, by group, the percent of requests that failed at first and were answered later; {} if there are none.

    Whoever asks again until an answer passes, as behind a filter, chooses the answers.
    """
    stored = Store(folder / "responses", response_schema()).every(("key", "error"))
    failed = pc.is_valid(stored["error"])
    keys = stored["key"].filter(failed)
    answered = stored["key"].filter(pc.invert(failed)) if len(keys) else keys
    if not (again := {*answered.filter(pc.is_in(answered, keys.combine_chunks())).to_pylist()}):
        return {}
    plan = read_plan(folder).select(["key", "group"])
    groups = plan["group"].to_pylist()
    found = Counter(group for key, group in zip(plan["key"].to_pylist(), groups, strict=True) if key in again)
    return {group: 100 * found[group] / n for group, n in sorted(Counter(groups).items())}


def unlike_runs(runs: Sequence[ComparedRun], manifests: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return warnings about runs with different requests, samples or annotators, and of runs asked or scored unlike."""
    identities = [manifest["identity"] for manifest in manifests]
    found = [
        f"{what} in all runs: their numbers do not compare"
        for kind in ("tasks", "corpora")
        for what in _not_the_same(kind, identities)
    ]
    for name in ("limit", "seed"):
        if len({json.dumps(identity[name]) for identity in identities}) > 1:
            found.append(f"`{name}` differs between runs: they did not use the same samples or seeds")
    if len({(run.annotator, run.annotator_answered) for run in runs}) > 1:
        annotators = ", ".join(f"{run.model}: {named_annotator(run)}" for run in runs)
        found.append(f"not all runs were annotated by the same annotator ({annotators})")
    how = [
        redacted_text("; ".join([*unusual_options(run.options).values(), *asked_apart(identity, run.tasks)]))
        for run, identity in zip(runs, identities, strict=True)
    ]
    if len(set(how)) > 1:
        told = ", ".join(f"{run.model}: {one}" for run, one in zip(runs, how, strict=True) if one)
        found.append(f"not all runs were asked and scored alike ({told})")
    return found


def _not_the_same(kind: str, identities: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield each of the `tasks` or `corpora` that runs share and that is another one in some, by its name."""
    for name in sorted({name for identity in identities for name in identity[kind]}):
        if len({identity[kind][name] for identity in identities if name in identity[kind]}) > 1:
            yield f"the {'task' if kind == 'tasks' else 'corpus'} {name} is not the same"


def unlike_settings(new: Path, old: Path) -> str:
    """Return in which settings the requests of two runs differ beside the model; empty if in none."""
    one, other = (read_manifest(folder)["identity"] for folder in (new, old))

    def unlike(names: Iterable[str], mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
        differing = [(name, mine.get(name), theirs.get(name)) for name in names if mine.get(name) != theirs.get(name)]
        return [
            f"`{name}` is {' and '.join('not given' if value is None else str(value) for value in values)}"
            for name, *values in differing
        ]

    found = unlike(("seed", "limit"), one, other)
    found += [what for kind in ("corpora", "tasks") for what in _not_the_same(kind, (one, other))]
    found += unlike(ASKED_BY, _settings(one), _settings(other))
    return f"the two runs were not asked alike: {'; '.join(found)}" if found else ""


def _settings(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run's model that change how it is asked, as far as they are given."""
    settings = identity["model"].get("settings", {})
    return {name: settings[name] for name in ASKED_BY if settings.get(name)}
