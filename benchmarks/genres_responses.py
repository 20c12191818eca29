"""Effect of each fault of GENRES's released code on its numbers, on the responses that its authors released.

python -m benchmarks.genres_responses FOLDER [--parser MODEL], with FOLDER the reference data of GENRES (responses/, the
two word lists) and MODEL a spaCy model of English by name or folder; without one, the stand-in rules find the subjects.
No language model is at hand: traits are every word of a profile that the dictionaries know.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from equivox.dataset_builders.genres_protocol import MALE_NAMES, RELATIONSHIPS
from equivox.dataset_builders.word_lists import read_lexicon
from equivox.metrics.genres.annotation.language import Character, count_emotion_words, read_passage
from equivox.metrics.genres.annotation.lexica import TraitLexicon, parse_emotions, parse_traits, score_traits
from equivox.metrics.genres.annotation.parsers import Parser, SpacyParser, StandInParser
from equivox.metrics.genres.annotation.readers import is_english
from equivox.metrics.genres.annotation.splitting import split_response
from equivox.metrics.genres.measures import METRIC_OF, Pair, measure, published_value

MODELS = {"qwen2v5VL3b": "Qwen2.5-VL-3B", "janus": "Janus-Pro-7B"}


@dataclass(frozen=True)
class Told:
    """One released response."""

    nep: str
    relationship: str
    names: tuple[str, str]
    genders: tuple[str, str]
    text: str


def responses(folder: Path, model: str) -> list[Told]:
    """Return the released responses of a model."""
    found = []
    for relationship in RELATIONSHIPS:
        for line in (folder / "responses" / f"{model}_mf_{relationship}.jsonl").read_text("utf-8").splitlines():
            record = json.loads(line)
            first, second = record["names"]
            genders = ("male", "female") if first in MALE_NAMES else ("female", "male")
            found.append(Told(record["image_name"], relationship, (first, second), genders, record["response"]))
    return found


def first_mention(told: Told) -> tuple[str, str, str] | None:
    """Split as the released code does: at the first mention of each name and of "Narrative passage"."""
    one, two = (told.text.find(name) for name in told.names)
    three = min(
        (at for at in (told.text.find(f"Narrative {w}") for w in ("passage", "Passage")) if at >= 0), default=-1
    )
    if min(one, two, three) < 0:
        return None
    story = told.text[three:].replace(":", "", 1).split("Shown personality traits")[0]
    return told.text[one:two].strip(), told.text[two:three].strip(), story.strip()


def count_splits(told: Sequence[Told]) -> dict[str, int]:
    """Count what the two ways of splitting make of the responses."""
    ours = [split_response(t.text, t.names) for t in told]
    theirs = [first_mention(t) for t in told]
    early = sum(
        a.problem is None and b is not None and t.names[1] in a.profiles[t.names[0]]
        for t, a, b in zip(told, ours, theirs, strict=True)
    )
    swapped = sum(b is not None and (not b[0] or not b[1]) for b in theirs)
    return {
        "split at headings": sum(a.problem is None for a in ours),
        "split by the released rule": sum(b is not None for b in theirs),
        "of these, the second name stands in the first profile": early,
        "of these, a profile is empty": swapped,
        "narratives that slip out of English": sum(a.problem is None and not is_english(a.narrative) for a in ours),
    }


@dataclass(frozen=True)
class Counts:
    """Counts of one narrative, by gender."""

    nep: str
    relationship: str
    ours: Mapping[str, tuple[float, float]]
    published: Mapping[str, tuple[float, float]]
    mutated: Mapping[str, tuple[float, ...]]


def count_language(told: Sequence[Told], emotions: Mapping[str, frozenset[str]], parser: Parser) -> Iterator[Counts]:
    """Count subject sentences and emotion words: ours, as published, and with the names of earlier items too."""
    grown: dict[tuple[str, str], list[str]] = {}
    split = [(t, split_response(t.text, t.names)) for t in told]
    usable = [(t, found.narrative) for t, found in split if found.problem is None and is_english(found.narrative)]
    docs = parser.parse([narrative for _, narrative in usable])
    for (t, _), doc in zip(usable, docs, strict=True):
        characters = [Character(name, gender) for name, gender in zip(t.names, t.genders, strict=True)]
        ours, published = read_passage(doc, characters), read_passage(doc, characters, paper_compat=True)
        mutated: dict[str, tuple[float, ...]] = {}
        for c in characters:
            names = grown.setdefault((t.relationship, c.gender), [])
            if c.name not in names:
                names.append(c.name)
            hits = 0.0
            for name in names:
                alone = read_passage(doc, [Character(name, c.gender if name == c.name else "")], paper_compat=True)
                hits += len(alone.sentences[name])
            mutated[c.gender] = (hits,)
        numbers = [
            {
                c.gender: (
                    float(len(passage.sentences[c.name])),
                    float(count_emotion_words(passage.lemmas[c.name], emotions)),
                )
                for c in characters
            }
            for passage in (ours, published)
        ]
        yield Counts(t.nep, t.relationship, numbers[0], numbers[1], mutated)


def difference(counts: Sequence[Counts], which: str, place: int, metric: str) -> str:
    """Return male minus female with its interval."""
    import numpy as np

    pairs = [
        Pair(nep=c.nep, male=getattr(c, which)["male"][place], female=getattr(c, which)["female"][place])
        for c in counts
    ]
    found = measure(METRIC_OF[metric], pairs, n_resamples=999, rng=np.random.default_rng(0))
    return f"{found.value:+.3f} ({found.ci_low:+.3f} to {found.ci_high:+.3f}), p {found.p:.3f}"


def rounded(counts: Sequence[Counts], place: int) -> tuple[float, float]:
    """Return the published overall difference: the mean of means rounded to two places, and the same unrounded."""
    gaps, exact = [], []
    for relationship in RELATIONSHIPS:
        own = [c for c in counts if c.relationship == relationship]
        means = [math.fsum(c.published[g][place] for c in own) / len(own) for g in ("male", "female")]
        gaps.append(round(round(means[0], 2) - round(means[1], 2), 2))
        exact.append(means[0] - means[1])
    return round(sum(gaps) / 4, 2), sum(exact) / 4


def warmth(told: Sequence[Told], lexicon: TraitLexicon) -> dict[str, float]:
    """Return M1 and M2 of all profile words that the dictionaries know, by each way of counting."""
    values: dict[str, list[Pair]] = {}
    for t in told:
        found = split_response(t.text, t.names)
        if found.problem is not None:
            continue
        by_gender = {}
        for name, gender in zip(t.names, t.genders, strict=True):
            words = ["".join(ch for ch in word if ch.isalnum() or ch == "-") for word in found.profiles[name].split()]
            ours = score_traits(words, lexicon)
            published = score_traits(words, lexicon, paper_compat=True)
            by_gender[gender] = {
                "M1": ours["warmth_share"],
                "M1 signed": ours["signed_warmth_share"],
                "M1 published": published["warmth_share"],
                "M2": ours["positive_score"],
                "M2 published": 0.0 if math.isnan(published["positive_score"]) else published["positive_score"],
            }
        for name in by_gender["male"]:
            pair = Pair(nep=t.nep, male=by_gender["male"][name], female=by_gender["female"][name])
            values.setdefault(name, []).append(pair)
    return {name: published_value(METRIC_OF[name.split()[0]], pairs) for name, pairs in values.items()}


def main(folder: Path, model_of_english: str | None) -> int:
    """Print every figure."""
    parser: Parser = StandInParser() if model_of_english is None else SpacyParser(model_of_english)
    out = sys.stdout.write
    emotions = parse_emotions(read_lexicon("nrc", folder / "nrc_emotion_lexicon_wordlevel_v0.92.txt"))
    traits = parse_traits(read_lexicon("sadcat", folder / "sadcat_full_dictionaries.csv"))
    cold = sum(entry.warmth and entry.warmth_direction < 0 for entry in traits.words.values())
    out(f"warmth words of the dictionaries: {sum(e.warmth for e in traits.words.values())}, of them cold: {cold}\n")
    for short, model in MODELS.items():
        told = responses(folder, short)
        out(f"\n{model}: {len(told)} responses\n")
        for what, count in count_splits(told).items():
            out(f"  {what}: {count}\n")
        counts = list(count_language(told, emotions, parser))
        out(f"  narratives counted: {len(counts)} (subjects by {model_of_english or 'the stand-in rules'})\n")
        for metric, place in (("M3", 0), ("M5", 1)):
            for which in ("ours", "published"):
                out(f"  {metric} {which}: {difference(counts, which, place, metric)}\n")
        for which in ("published", "mutated"):
            means = [math.fsum(getattr(c, which)[g][0] for c in counts) / len(counts) for g in ("male", "female")]
            beside = (
                "the same, with the names of earlier items" if which == "mutated" else "subject sentences as published"
            )
            out(f"  {beside}: male {means[0]:.3f}, female {means[1]:.3f}\n")
        with_rounding, without = rounded(counts, 0)
        out(f"  M3 published, of means rounded before averaging: {with_rounding:+.2f}, unrounded {without:+.4f}\n")
        for name, value in warmth(told, traits).items():
            out(f"  {name} (every known word of the profiles): {value:+.3f}\n")
    return 0


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--parser")
    asked = arguments.parse_args()
    sys.exit(main(asked.folder, asked.parser))
