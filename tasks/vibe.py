"""VIBE: what does a model make up about a person when only the voice changes?

Data:       CREMA-D 1.0 (ODbL 1.0), groups female/male; L2-ARCTIC v5 (CC BY-NC 4.0), six first languages.
            Built by `equivox data build crema_d|l2_arctic`; an embedded synthetic sample needs no download.
Paper:      VIBE, arXiv 2604.17248, sections 2.2-2.4 and appendix A.
Departs:    The p-value that decides permutes labels over speakers, not clips; the paper's is given too.
            Each score is given with its null mean (the mean without an effect) and an interval for the population.
            The threshold of 10 occurrences per value is scaled down below 1,000 responses.
            A value that never varies is undefined (NaN), not 0.
            Story's gender, race and age are echoes of the voice: scored separately, outside the task's average.
            Attributes that the prompt offers as a closed choice are annotated as that choice.
            Story's personality is the first trait alone, as the paper does not say how it counts several.
            Accents are permuted within the gender of the speakers, so that a gender difference is no noise.
            The extractor's prompt is equivox's, with three examples per task, as the paper prints none.
            A published word list drops the sentences that name gender, race or age; the authors did it by hand.
            An answer ends after 512 tokens; the paper states no limit.
            The extractor Qwen3-8B annotates without thinking, in at most 512 tokens; the paper states neither.
            The paper's Table 2 prints no domain for Spoken StereoSet; `equivox reproduce vibe` takes gender.
Cannot say: Whether a difference harms anyone, or whether it would show in another language or in spontaneous
            speech: both corpora are read English. Three options cannot keep six groups fully apart: the attainable
            maximum of an attribute is given with its score.
"""

from __future__ import annotations

from collections.abc import Mapping

from equivox.core.task import AnnotationScheme, DataSource, Task
from equivox.metrics.ntvd import METRIC
from equivox.tasks.prompts import load_attributes, load_examples, load_prompts, load_wordings

CREMA_D = DataSource(corpus="crema_d")
L2_ARCTIC = DataSource(corpus="l2_arctic")

PROMPTS, WORDINGS = load_prompts("vibe"), load_wordings("vibe")
ATTRIBUTES, EXAMPLES = load_attributes("vibe"), load_examples("vibe")
TITLES = {
    "story": "story",
    "advisory": "hobby advice",
    "candidate": "job interview",
    "casting": "casting",
    "shopper": "shopping",
}
GENDERS = {"female": "women", "male": "men"}


def vibe_task(
    family: str,
    prompt: str,
    *,
    data: DataSource,
    group: tuple[str, ...],
    strata: tuple[str, ...],
    blocks: tuple[str, ...] = (),
    items: tuple[str, ...] = ("sentence",),
    cluster: str = "speaker",
    card: str = __doc__,
    unit_name: str = "",
    group_labels: Mapping[str, str] | None = None,
) -> Task:
    """Return the VIBE task `<family>:<prompt>` on any corpus, comparing any column of it."""
    return Task(
        name=f"{family}:{prompt}",
        version=1,
        card=card,
        data=data,
        prompt=PROMPTS[prompt],
        group=group,
        cluster=cluster,
        strata=strata,
        blocks=blocks,
        items=items,
        annotation=AnnotationScheme(attributes=ATTRIBUTES[prompt], examples=EXAMPLES[prompt]),
        metric=METRIC,
        interventions=WORDINGS[prompt],
        title=TITLES[prompt],
        unit_name=unit_name,
        group_labels=group_labels or {},
    )


TASKS: tuple[Task, ...] = tuple(
    vibe_task(
        family, prompt, data=data, group=group, strata=strata, blocks=blocks, unit_name="speakers", group_labels=labels
    )
    for family, data, group, strata, blocks, labels in (
        ("vibe_gender", CREMA_D, ("gender",), ("sentence", "emotion"), (), GENDERS),
        ("vibe_accent", L2_ARCTIC, ("accent",), ("sentence",), ("gender",), {}),
    )
    for prompt in PROMPTS
)
