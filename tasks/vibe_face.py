"""VIBE asked of a photograph: what does a model make up about a person when only the face changes?

Data:       FairFace (CC BY 4.0), adults only, built by `equivox data build fairface`; an embedded sample of drawings
            needs no download.
Paper:      The questions and what is annotated are VIBE's (arXiv 2604.17248, appendix A); the corpus is FairFace
            (arXiv 1908.04913). The paper has no photographs: nothing here is one of its numbers.
Departs:    The paper's prompts speak of a recording. The prompts here are equivox's own words for the same questions,
            with the same options, about somebody in a photograph. Groups are permuted among people who are alike in the
            two other labels: genders within race and age, races within gender and age, ages within gender
            and race. No sentence is held equal, because none is said. Everything else is as in VIBE.
Cannot say: How the people see themselves: gender, race and age are annotators' judgement of an appearance. Whether the
            face makes a difference, or clothes, light and place, which go with it. Whether a difference harms anyone.
"""

from __future__ import annotations

from dataclasses import replace

from equivox.core.fields import packaged_yaml
from equivox.core.task import IMAGE, DataSource, Prompt, Task, WorkedExample
from equivox.tasks.vibe import PROMPTS, vibe_task

FAIRFACE = DataSource(corpus="fairface")
LABELS = ("gender", "race", "age_group")
FAMILIES = {"vibe_face_gender": "gender", "vibe_face_race": "race", "vibe_face_age": "age_group"}
"""The families, each with the label that it compares."""

_DOCUMENT = packaged_yaml("tasks/vibe_face.yaml")


def _of_a_photograph(task: Task) -> Task:
    """Return a task of VIBE with its question asked of a photograph."""
    _, _, name = task.name.partition(":")
    prompt = Prompt(
        name=f"vibe_face/{name}",
        version=_DOCUMENT["version"],
        text=_DOCUMENT["prompts"][name],
        source=f"equivox, after {PROMPTS[name].source}, which speaks of a recording",
        without_media="",
    )
    refusing = WorkedExample.of(_DOCUMENT["refusal"], {"refusal": "yes"})
    spoken = (example for example in task.annotation.examples if example.values.get("refusal") != "yes")
    annotation = replace(task.annotation, examples=(*spoken, refusing))
    # VIBE's other wordings speak of a recording, too.
    return replace(task, prompt=prompt, media=(IMAGE,), condition="image", annotation=annotation, interventions={})


TASKS: tuple[Task, ...] = tuple(
    _of_a_photograph(
        vibe_task(
            family,
            prompt,
            data=FAIRFACE,
            group=(label,),
            strata=(),
            blocks=tuple(other for other in LABELS if other != label),
            items=(),
            cluster="photograph",
            card=__doc__,
        )
    )
    for family, label in FAMILIES.items()
    for prompt in PROMPTS
)
