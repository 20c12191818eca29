"""BenchmarkCards (arXiv 2410.12974) of families of tasks, as JSON in the layout of that project's released cards.

Everything is taken from the tasks' card, their declaration, their metric and the facts of their corpus. A required
field that none of these states is "Not stated."; an optional one is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from equivox.core.attributes import Attribute
from equivox.core.errors import RequestError
from equivox.core.metric import Measure
from equivox.core.task import Task
from equivox.dataset_builders.base import CorpusFacts
from equivox.integrations.hub.dataset_folder import published_facts

NOT_STATED = "Not stated."

_SECTION = re.compile(r"^([A-Z][a-z]+(?: [a-z]+)?):(?:\s+|$)")


def benchmark_card(tasks: Sequence[Task]) -> dict[str, Any]:
    """Return the BenchmarkCard of the tasks of one family; RequestError for none or several families."""
    families = sorted({task.family for task in tasks})
    if len(families) != 1:
        raise RequestError(f"a card is about one family of tasks, got {', '.join(families) or 'none'}; name one")
    first = tasks[0]
    said = card_sections(first.card)
    facts = list({fact.name: fact for task in tasks if (fact := published_facts(task))}.values())
    return {
        "benchmark_details": _details(families[0], tasks, said, facts),
        "purpose_and_intended_users": {
            "goal": first.metric.help or NOT_STATED,
            "audience": [NOT_STATED],
            "tasks": [f"{task.name}: {task.prompt.source}" for task in tasks],
            **({"limitations": f"Cannot say: {said['Cannot say']}"} if "Cannot say" in said else {}),
        },
        "data": {
            "source": said.get("Data", NOT_STATED),
            "size": "; ".join(_size(fact) for fact in facts if fact.published) or NOT_STATED,
            "format": "; ".join(dict.fromkeys(_sent(task) for task in tasks)),
            "annotation": _annotation(tasks),
        },
        "methodology": {
            "methods": [
                *dict.fromkeys(_method(task) for task in tasks),
                *([f"Departs from the paper: {said['Departs']}"] if "Departs" in said else []),
            ],
            "metrics": [_named(measure) for measure in first.metric.measures],
            "calculation": f"{first.metric.help} Unit of {first.metric.measures[0].name}: {first.metric.unit}.".strip(),
            "interpretation": " ".join(_interpreted(measure) for measure in first.metric.measures),
            "validation": NOT_STATED,
        },
        "targeted_risks": {
            "risk_categories": ["Bias"],
            "demographic_analysis": "; ".join(_analysis(tasks, said)),
        },
        "ethical_and_legal_considerations": {
            "privacy_and_anonymity": NOT_STATED,
            "data_licensing": "; ".join(f"{fact.title}: {fact.licence}" for fact in facts) or NOT_STATED,
            "consent_procedures": NOT_STATED,
            "compliance_with_regulations": NOT_STATED,
        },
    }


def card_sections(card: str) -> dict[str, str]:
    r"""Return the sections of a task's card by their headings; the text before the first is under "".

    >>> card_sections("T: which?\n\nPaper:  X, section 2,\n        and 3.\nCannot say: why.")
    {'': 'T: which?', 'Paper': 'X, section 2, and 3.', 'Cannot say': 'why.'}
    """
    found: dict[str, list[str]] = {"": []}
    heading = ""
    for number, line in enumerate(card.strip().splitlines()):
        # The first line is the card's title, which may have a colon too.
        if number and (match := _SECTION.match(line)):
            heading = match[1]
            line = line[match.end() :]
        found.setdefault(heading, []).append(line.strip())
    return {name: text for name, lines in found.items() if (text := " ".join(filter(None, lines)))}


def _details(
    family: str, tasks: Sequence[Task], said: Mapping[str, str], facts: Sequence[CorpusFacts]
) -> dict[str, Any]:
    overview = said.get("", "")
    title = overview.partition(":")[0] if ":" in overview else family
    kinds = dict.fromkeys(medium.kind for task in tasks for medium in task.media)
    languages = list(dict.fromkeys(fact.language for fact in facts if fact.language))
    resources = [said.get("Paper"), *(fact.homepage for fact in facts), *(fact.paper for fact in facts)]
    return {
        "name": title if title == family else f"{title} ({family})",
        "overview": overview or NOT_STATED,
        "data_type": ", ".join((*kinds, "text")),
        **({"languages": languages} if languages else {}),
        "resources": list(dict.fromkeys(resource for resource in resources if resource)),
    }


def _size(facts: CorpusFacts) -> str:
    return f"{facts.title}: " + ", ".join(f"{n:,} {what}" for what, n in facts.published.items())


def _sent(task: Task) -> str:
    media = " and ".join(f"one {medium.kind}" for medium in task.media)
    return f"{media} before a text prompt" if media else "a text prompt"


def _annotation(tasks: Sequence[Task]) -> str:
    whole = dict.fromkeys(_asked(attribute) for task in tasks for attribute in task.attributes)
    # Options of segments can depend on the sample, such as the names of its characters, so that only names are given.
    named = {attribute.name for task in tasks for attribute in task.attributes}
    parts = dict.fromkeys(
        attribute.name
        for task in tasks
        for segment in task.annotation.asks(task)
        for attribute in segment.attributes
        if attribute.name not in named
    )
    return (
        "Responses are annotated by the annotator of the run (a language model, rules, or a panel), which every result "
        f"names. Attributes: {'; '.join([*whole, *parts])}."
    )


def _asked(attribute: Attribute) -> str:
    options = f" ({' / '.join(attribute.options)})" if attribute.options else ""
    return f"{attribute.name}{options}"


def _method(task: Task) -> str:
    sampling = task.sampling
    decoding = (
        "greedy decoding"
        if sampling.temperature == 0
        else f"sampling at temperature {sampling.temperature:g}, top-p {sampling.top_p:g}, top-k {sampling.top_k}"
    )
    return (
        f"{sampling.repeats} response{'' if sampling.repeats == 1 else 's'} per sample and presentation, "
        f"{decoding}, at most {sampling.max_new_tokens} tokens"
    )


def _named(measure: Measure) -> str:
    return f"{measure.name} ({measure.title})" if measure.title else measure.name


def _interpreted(measure: Measure) -> str:
    means = 'no value means "no bias"' if measure.no_bias is None else f'{measure.no_bias:g} means "no bias"'
    return f"{measure.name}: {means}" + (f"; {measure.help.rstrip('.')}" if measure.help else "") + "."


def _analysis(tasks: Sequence[Task], said: Mapping[str, str]) -> list[str]:
    stated = [said["Compares"].rstrip(".")] if "Compares" in said else []
    return [*stated, *dict.fromkeys(_compared(task) for task in tasks)]


def _compared(task: Task) -> str:
    held = f", with {' × '.join(task.strata)} held equal" if task.strata else ""
    return f"compares {task.dimension}; a {task.cluster} carries it{held}"
