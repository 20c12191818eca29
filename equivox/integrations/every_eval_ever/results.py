"""The scores of a run as entries of `evaluation_results`: each a distance from "no bias", with its evidence.

The schema wants to know of every number whether lower is better, and it holds no unknown number. So a score is written
as its distance from "no bias", of which 0 is the best; scores without such a distance, and undefined scores, are left
out with their reasons and never become a number.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from equivox.annotate import AnnotatorIdentity
from equivox.annotate.model import asked_prompts
from equivox.annotate.rules import FOR_SIMULATED, misread_by_rules
from equivox.audit.stored import StoredAudit, stored_audits
from equivox.core.coverage import STAGES
from equivox.core.files import read_document
from equivox.core.hashing import digest
from equivox.core.redact import without_places
from equivox.core.scores import Score, distance_interval
from equivox.core.task import Task
from equivox.dataset_builders.corpus import SAMPLE
from equivox.engines import model_label
from equivox.integrations.flat import metric_key
from equivox.report.failures import lost_in
from equivox.run.declarations import read_tasks
from equivox.run.manifest import public_manifest, read_manifest
from equivox.run.scoring import read_scores
from equivox.run.store import stored_annotator

UNKNOWN = "unknown"
"""The schema's word for a fact that is not known."""

EMBEDDED = " (the sample that equivox comes with)"

_OWN_MACHINE = ("vllm", "transformers", "simulated")
"""Engines that run the model on machines of whoever evaluates it."""

_NOT_PORTABLE = re.compile(r'[<>:"\\|?*\x00-\x1f\s]')


@dataclass(frozen=True)
class ScoredRun:
    """A scored run in the folder `folder`, as far as the document needs it; its files are read once each.

    Everything in it but `stored` may be published. RequestError, when it is read, for what is missing.
    """

    folder: Path

    @cached_property
    def stored(self) -> dict[str, Any]:
        """The manifest as it is stored, which is not published."""
        return read_manifest(self.folder)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The manifest as it may be published."""
        return public_manifest(self.stored)

    @cached_property
    def tasks(self) -> list[Task]:
        """The run's tasks."""
        return read_tasks(self.folder)

    @cached_property
    def annotator(self) -> AnnotatorIdentity:
        """The annotator whose annotations are scored."""
        return stored_annotator(self.folder, str(self.manifest["command"]["annotator"]))

    @cached_property
    def judges(self) -> list[AnnotatorIdentity]:
        """The models that annotated: the annotator, or the members of a panel; empty for rules."""
        members = self.annotator.settings.get("members", ())
        asked = [stored_annotator(self.folder, name) for name in members] if members else [self.annotator]
        return [one for one in asked if "engine" in one.settings]

    @cached_property
    def audits(self) -> list[StoredAudit]:
        """The audits of the annotator that are kept with the run."""
        return list(stored_audits(self.folder, self.annotator.name))

    @cached_property
    def stored_scores(self) -> list[Score]:
        """All scores of the run, those of lost answers included."""
        return read_scores(self.folder)

    @cached_property
    def scores(self) -> list[Score]:
        """The scores of whole tasks; those over all tasks of a family are left out, as in a submission."""
        names = {task.name for task in self.tasks}
        return [
            score for score in self.stored_scores if score.is_whole and score.role == "outcome" and score.task in names
        ]

    @cached_property
    def options(self) -> dict[str, Any]:
        """The options of the scoring."""
        return dict(read_document(self.folder / "scores.json")["options"])

    @property
    def model(self) -> dict[str, Any]:
        """`model_info` of the model that answered."""
        return model_info(self.manifest["identity"]["model"], self.manifest["environment"]["libraries"])

    @property
    def identifier(self) -> str:
        """`evaluation_id`: equal for equal runs with equal annotators, whenever they are exported."""
        told = digest([self.manifest["identity"], self.manifest["created"], self.annotator.digest])[:12]
        return f"equivox/{self.model['id'].replace('/', '_')}/{told}"

    def left_out(self) -> dict[str, str]:
        """Return why scores have no entry, by the id that it would have."""
        return {result_id(score): why for score in self.scores if (why := missing(score)) is not None}

    def results(self) -> list[dict[str, Any]]:
        """Return `evaluation_results`: an entry for each score that can be written as a number."""
        own = {task.name: task for task in self.tasks}
        return [self._result(own[score.task], score) for score in self.scores if missing(score) is None]

    def _result(self, task: Task, score: Score) -> dict[str, Any]:
        lost = lost_in(score.task, self.stored_scores)
        return {
            "evaluation_result_id": result_id(score),
            "evaluation_name": score.task,
            "source_data": self._source(task),
            "metric_config": self._metric(task, score),
            "score_details": {
                # Rounding keeps 100.00000000000001 inside the bounds.
                "score": round(distance(score), 9),
                "details": details(score) | ({"groups_lose_unequally": lost} if lost else {}),
                "uncertainty": self._uncertainty(score),
            },
            "generation_config": self._generation(task),
        }

    def _source(self, task: Task) -> dict[str, Any]:
        identity, corpus = self.manifest["identity"], task.data.corpus
        sample = self.manifest["command"]["data"] == SAMPLE and task.data.table is None
        limit = identity["limit"]
        return {
            "dataset_name": f"{corpus}{EMBEDDED if sample else ''}",
            "source_type": "other",
            "additional_details": {
                "fingerprint": identity["corpora"][corpus],
                "samples": "all" if limit is None else f"at most {limit} per task",
            },
        }

    def _metric(self, task: Task, score: Score) -> dict[str, Any]:
        measure = task.metric.by_name[score.name]
        scoring = self._judging(task)
        misread = misread_by_rules(model_label(str(self.manifest["command"]["model"])), self.annotator.name, [task])
        return {
            "evaluation_description": " ".join(
                filter(None, [measure.help, *(text for _, text in task.metric.glossary)])
            ),
            "metric_id": f"equivox.{task.metric.name}.{metric_key(score)}",
            "metric_name": " ".join(text for text in (score.name, measure.title) if text),
            "metric_kind": f"equivox.{task.metric.name}",
            "metric_unit": score.unit,
            "lower_is_better": True,
            "score_type": "continuous",
            # A score is written as a distance, also where its value has a side.
            "min_score": 0.0,
            "max_score": _most(task, score),
            **({} if scoring is None else {"llm_scoring": scoring}),
            "additional_details": {
                "score_is": _meaning(score),
                "zero_of_value_means": score.zero_means,
                "annotator": f"{self.annotator.name}, version {self.annotator.version}",
                "annotator_settings": _text(without_places(dict(self.annotator.settings))),
                "annotator_checked_by_people": "; ".join(audit.told for audit in self.audits) or "no",
                **({"annotator_warning": FOR_SIMULATED} if misread else {}),
                "scoring_options": _text(self.options),
            },
        }

    def _judging(self, task: Task) -> dict[str, Any] | None:
        """Return `llm_scoring`, or None if no model annotated the task."""
        if not self.judges:
            return None
        prompts = asked_prompts(task, self.judges[0])
        if prompts == []:
            return None
        told = "\n\n".join(prompts) if prompts else "not known: this version has another prompt than the annotator had"
        return {
            "judges": [{"model_info": model_info(without_places(one.settings["engine"]), {})} for one in self.judges],
            "input_prompt": told,
            **({"aggregation_method": "majority_vote"} if "members" in self.annotator.settings else {}),
            "additional_details": {
                "what_judges_say": "attributes of a response, from which the score is computed; no judge gives a score"
            },
        }

    def _uncertainty(self, score: Score) -> dict[str, Any]:
        interval = interval_of(score)
        if interval is None:
            return {"num_samples": score.coverage.used}
        return {
            "confidence_interval": {
                "lower": interval[0],
                "upper": interval[1],
                "confidence_level": 0.95,
            },
            "num_samples": score.coverage.used,
        }

    def _generation(self, task: Task) -> dict[str, Any]:
        sampling = task.sampling
        further = {
            "condition": task.condition,
            "media": ", ".join(medium.kind for medium in task.media) or "none",
            "responses_per_sample": str(sampling.repeats),
            "seed": str(self.manifest["identity"]["seed"]),
            "frequency_penalty": _number(sampling.frequency_penalty),
            "stop": _text(list(sampling.stop)),
            "task_version": str(task.version),
            "task_fingerprint": task.fingerprint,
        }
        return {
            "generation_args": {
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "top_k": sampling.top_k or None,
                "max_tokens": sampling.max_new_tokens,
                "prompt_template": task.prompt.text,
            },
            "additional_details": further,
        }


def model_info(identity: Mapping[str, Any], libraries: Mapping[str, str]) -> dict[str, Any]:
    """Return `model_info` of a model from its published identity and the versions of the run's libraries.

    Whether its weights are open is not known to a run, and who runs a server is not known either: both are "unknown".
    """
    engine, name = str(identity["engine"]), str(identity["model"])
    version = libraries.get(engine)
    return {
        "name": name,
        "id": _NOT_PORTABLE.sub("_", name if "/" in name.strip("/") else f"{engine}/{name}"),
        "inference_engine": {"name": engine, **({"version": version} if version else {})},
        "additional_details": {
            "deployment_type": "self_deployed" if engine in _OWN_MACHINE else UNKNOWN,
            "model_availability": UNKNOWN,
            "revision": str(identity["revision"]),
            "settings": _text(identity["settings"]),
        },
    }


def result_id(score: Score) -> str:
    """Return the id of a score within its run.

    >>> from equivox.core.coverage import Coverage
    >>> result_id(Score(task="t:a", condition="audio", dimension="gender", attribute=None, role="outcome", name="nTVD",
    ...     unit="percent", zero_means="", coverage=Coverage(requested=0, generated=0, answered=0, parsed=0, used=0)))
    't:a/ntvd'
    """
    return f"{score.task}/{metric_key(score)}"


def distance(score: Score) -> float:
    """Return the number that is written for a defined score: its distance from "no bias", 0 or more; NaN without one.

    A number that noise only increases is written as its estimate, whether or not some value of it means "no bias".
    """
    return score.distance if math.isnan(score.estimate) else max(0.0, score.estimate)


def missing(score: Score) -> str | None:
    """Return why a score has no number to be written; None if it has one."""
    if score.undefined is not None:
        return score.undefined
    return None if math.isfinite(distance(score)) else 'no value of it means "no bias", so that neither side is better'


def interval_of(score: Score) -> tuple[float, float] | None:
    """Return the interval of `distance`; None if the score has none.

    That of a number with a side (male minus female) is folded at "no bias": −1 to 3 becomes 0 to 3.
    """
    low, high = score.ci_low, score.ci_high
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    if not math.isnan(score.estimate):
        return max(0.0, low), max(0.0, high)
    return distance_interval(low, high, score.target)


def details(score: Score) -> dict[str, str]:
    """Return the evidence of a score as text; numbers that are not known are left out."""
    numbers = {
        "value": score.value,
        "null_mean": score.null_mean,
        "attainable_max": score.attainable_max,
        "interval_for_new_items_low": score.new_items_low,
        "interval_for_new_items_high": score.new_items_high,
        "interval_for_these_units_low": score.same_units_low,
        "interval_for_these_units_high": score.same_units_high,
        "lowest_value_with_missing_responses": score.worst_low,
        "highest_value_with_missing_responses": score.worst_high,
        "p": score.p,
        "q": score.q,
        "smallest_p_of_the_design": score.p_least,
    }
    coverage = score.coverage
    group, share = coverage.worst
    words = {
        "design_cannot_tell": score.untold or "",
        "dimension": score.dimension,
        "notes": " | ".join(score.notes),
        "group_with_fewest_used": group,
        "share_used_in_that_group": _number(share) if group else "",
    }
    return {
        **{name: _number(number) for name, number in numbers.items() if math.isfinite(number)},
        **{name: text for name, text in words.items() if text},
        "clusters": str(score.n_clusters),
        **{f"responses_{count}": str(getattr(coverage, count)) for count in (*STAGES, "truncated", "withheld")},
    }


def _most(task: Task, score: Score) -> float | str:
    """Return the largest possible distance; "Infinity" without a bound.

    Numbers lie no further apart than their range is wide, whatever their unit is called.
    """
    if not task.metric.by_name[score.name].in_unit:
        return 100.0 if score.unit.startswith("percent") else "Infinity"
    number = next((own.number for own in task.attributes if own.number is not None), None)
    if number is None or number.low is None or number.high is None:
        return "Infinity"
    return number.high - number.low


def _meaning(score: Score) -> str:
    if not math.isnan(score.estimate):
        return "the estimate for the population, noise removed; `value` in the details is the number as published"
    return f'the distance of `value`, in the details, from {score.target:g}, which means "no bias"'


def _number(value: float) -> str:
    return f"{value:.6g}"


def _text(value: Sequence[Any] | Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
