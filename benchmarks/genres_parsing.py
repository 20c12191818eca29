"""Time that 1,440 narratives take through spaCy: python -m benchmarks.genres_parsing FOLDER [MODEL].

FOLDER is the reference data of GENRES. Without MODEL, a pipeline of the size of en_core_web_sm (CNN of width 96, tagger
and parser) with random weights is made: its parses are noise, its work is the same.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.genres_responses import responses
from equivox.core.segments import Segment
from equivox.metrics.genres.annotation.readers import SEPARATOR, language_tool
from equivox.metrics.genres.annotation.splitting import split_response
from equivox.metrics.genres.annotation.tools import Tools

LABELS = ("ROOT", *(f"label{n}" for n in range(44)))
"""As many labels as spaCy's English parsers have."""


def random_pipeline(folder: Path) -> str:
    """Write a pipeline with random weights and return its folder."""
    import spacy
    from spacy.training import Example

    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec")
    listener = {"model": {"tok2vec": {"@architectures": "spacy.Tok2VecListener.v1", "width": 96}}}
    nlp.add_pipe("tagger", config=listener)
    nlp.add_pipe("parser", config=listener)
    words = [f"w{n}" for n in range(len(LABELS))]
    heads = [0] * len(words)
    examples = [
        Example.from_dict(
            nlp.make_doc(" ".join(words)),
            {"heads": heads, "deps": LABELS, "tags": [f"T{n % 50}" for n in range(len(words))]},
        )
    ]
    nlp.initialize(lambda: examples)
    nlp.to_disk(folder)
    return str(folder)


def main(folder: Path, model: str | None) -> int:
    """Print seconds and memory."""
    told = responses(folder, "qwen2v5VL3b")
    parts = [
        Segment(
            name="language",
            text=split_response(t.text, t.names).narrative,
            attributes=(),
            extra={"names": SEPARATOR.join(t.names), "genders": SEPARATOR.join(t.genders)},
        )
        for t in told
    ]
    with tempfile.TemporaryDirectory() as scratch:
        name = model or random_pipeline(Path(scratch) / "pipeline")
        tools = Tools(parser=name, nrc=folder / "nrc_emotion_lexicon_wordlevel_v0.92.txt")
        begin, read = time.perf_counter(), 0
        for values in language_tool(tools).read(parts):
            read += values is not None
        elapsed = time.perf_counter() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    sys.stdout.write(f"{read} of {len(parts)} narratives in {elapsed:.0f} s; at most {memory:.0f} MB here, ")
    sys.stdout.write(f"{workers:.0f} MB in each worker\n")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("model", nargs="?")
    given = parser.parse_args()
    sys.exit(main(given.folder, given.model))
