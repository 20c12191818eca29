"""BADF: what do a model's stories associate with whom?

Data:       a grid of names and places that is written down (`dataset_builders/badf.py`); nothing is downloaded. A grid
            of one's own is a YAML file (`--data GRID.yaml`).
Paper:      BADF, arXiv 2508.01412, sections 3 and 4 and appendices C to H.
Departs:    In addition to the published, uncorrected p: p by permutation within stories of two characters, an exact p
            for small counts, q over everything tested, an effect size, and the count that chance gives. Phrases are
            written in lower case without a leading article, once per story. Wordings are merged by lemma unless
            `merge=embedding` is given (the paper merges by meaning at 0.63). Unparsed stories are counted, never
            taken for stories without phrases. The extraction prompt adds a rule to Table 9: "each phrase in a few
            words of English and none about anybody else". Each stage of the annotator Qwen3-32B has at most 1,024
            tokens; the paper states no limit. The exclusivity question has an enumerated answer; an answer that
            cannot be read keeps the phrase. Qwen3-8B writes its stories without thinking, as the paper does not say
            that it thinks. The open-box prompt has an X for each source token; the paper prints five.
            A character has at most 20 phrases.
            `equivox reproduce badf` leaves Figures 6 to 8 out; `equivox report --figure heat:TASK` draws the same map
            for one run.
Cannot say: which names carry an identity for whom: ten names stand for two genders, two for each other identity, and
            p-values over stories speak of these names alone. With few names the p over names, which decides, supposes
            that names differ normally. The annotator is told the descriptors, so that its own associations may enter.
            With more than two identities the score compares with the least; an association there says that an identity
            is not the least, `residual` says whether it stands out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from equivox.core.task import AnnotationScheme, DataSource, Patch, Sampling, Task
from equivox.dataset_builders.badf import CORPUS, PAIR, SINGLE
from equivox.metrics.badf import METRIC, SimulatedStories, StoryScheme
from equivox.metrics.ntvd import METRIC as NTVD
from equivox.tasks.prompts import load_prompts, load_wordings
from equivox.tasks.vibe import ATTRIBUTES

PROMPTS, WORDINGS = load_prompts("badf"), load_wordings("badf")
SCHEME = StoryScheme(prompts=PROMPTS)
PUBLISHED_SAMPLING = Sampling(temperature=0.9, top_p=1.0, frequency_penalty=0.6, max_new_tokens=2048)
REPEATS: Mapping[str, Mapping[str, int]] = {
    # A single character has as many stories as in pairs.
    SINGLE: {"gender": 20, "race": 30, "religion": 30},
    PAIR: {"gender": 20, "race": 10, "religion": 10},
}
OTHER_REPEATS = 20
"""Stories per sample for dimensions that the paper does not have."""
OPEN_BOX = Patch(
    source_span=("{d1}", "{loc}"),
    source_layer=2,
    target=PROMPTS["openbox_target"].text,
    target_token="X",
    target_layer=3,
    answer=PROMPTS["openbox_answer"].text,
)
"""Layers and texts of appendix C.1; a custom task gives others as `patch`."""


SETTINGS: Mapping[str, tuple[str, str, Patch | None]] = {
    "badf_single": ("single", SINGLE, None),
    "badf_two": ("two", PAIR, None),
    "badf_balanced": ("balanced", PAIR, None),
    "badf_negative": ("negative", PAIR, None),
    "badf_openbox": ("two", PAIR, OPEN_BOX),
}
"""The prompt, the number of characters and the patch of each family."""
TITLES = {
    "badf_single": "stories",
    "badf_two": "stories of two",
    "badf_balanced": "balanced stories",
    "badf_negative": "negative stories",
    "badf_openbox": "open-box stories",
}


def badf_task(family: str, dimension: str) -> Task:
    """Return the task `<family>:<dimension>`, for any dimension of the grid."""
    prompt, characters, patch = SETTINGS[family]
    alone = characters == SINGLE
    sampling = dict(vars(PUBLISHED_SAMPLING)) | {"repeats": REPEATS[characters].get(dimension, OTHER_REPEATS)}
    return Task(
        name=f"{family}:{dimension}",
        version=1,
        card=__doc__,
        data=DataSource(corpus=CORPUS, where={"dimension": dimension, "characters": characters}),
        prompt=replace(PROMPTS[prompt], patch=patch),
        # Hidden states are replaced at words of the prompt, which other wordings may not have.
        interventions={} if patch else WORDINGS.get(prompt, {}),
        media=(),
        condition="text",
        conditions=("text",),
        group=(dimension,) if alone else (),
        compares="" if alone else dimension,
        cluster="who",
        strata=("category", "loc"),
        metadata=("d1", "d2", "identity_1", "identity_2", "category", "loc", "identities", "stratum"),
        sampling=Sampling(**sampling),
        annotation=SCHEME,
        simulate=SimulatedStories(),
        metric=METRIC,
        title=TITLES[family],
        unit_name="names",
        group_labels={"female": "women", "male": "men"} if dimension == "gender" else {},
    )


CHARACTER = "badf_character"
"""The family that asks of BADF's stories what VIBE asks of its own."""
CHARACTER_CARD = """BADF's stories, by VIBE's questions: which job and character does a name get?

Data:       As in BADF, one character each.
Paper:      The prompt is BADF's for a single character (arXiv 2508.01412, table 4), the attributes are VIBE's
            (arXiv 2604.17248, appendix A). Neither paper has this task.
Departs:    What is annotated is one job and one trait, which rules can find without a model; scored by nTVD.
Cannot say: what BADF says of all phrases of a story. The rules know the words of their vocabularies alone: a story
            about anything else counts as unstated, so real models need an annotator that is a model.
"""


def character_task(family: str, dimension: str) -> Task:
    """Return the task `badf_character:<dimension>`, for any dimension of the grid."""
    attributes = tuple(one for one in ATTRIBUTES["story"] if one.name in ("occupation", "personality"))
    return replace(
        badf_task("badf_single", dimension),
        name=f"{family}:{dimension}",
        card=CHARACTER_CARD,
        annotation=AnnotationScheme(attributes=attributes),
        simulate=None,
        metric=NTVD,
        title="story characters",
    )


TASKS: tuple[Task, ...] = (
    *(badf_task(family, dimension) for family in SETTINGS for dimension in ("gender", "race", "religion")),
    *(character_task(CHARACTER, dimension) for dimension in ("gender", "race", "religion")),
)
