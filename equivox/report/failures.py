"""What failed in a run, a line for each reason: requests to the model, and texts that the annotator could not do."""

from __future__ import annotations

from pathlib import Path

from equivox.report.numbers import how_many, shortened
from equivox.run.generating import count_failures
from equivox.run.stored import count_annotation_failures


def request_failures(folder: Path, shown: int) -> list[str]:
    """Return what requests to the model failed on, the most frequent `shown` errors first, and how many are left."""
    failures = count_failures(folder)
    lines = [f"failed {how_many(count, 'time')}: {error}" for error, count in failures.most_common(shown)]
    if len(failures) > shown:
        lines.append(f"… and {len(failures) - shown} other reasons, see `responses` in the run")
    return lines


def annotation_failures(folder: Path, annotator: str, *, example: bool, shown: int = 5) -> list[str]:
    """Return what an annotator failed on, by its errors, and how often what it wrote was no valid form.

    With `example` the most frequent invalid form is quoted; it may hold words of an answer.
    """
    failures = count_annotation_failures(folder, annotator)
    lines = [f"{annotator} failed {how_many(count, 'time')}: {error}" for error, count in failures.most_common(shown)]
    invalid = count_annotation_failures(folder, annotator, "unparsed")
    for written, _ in invalid.most_common(1):
        quoted = f", such as: {shortened(written, 80)}" if example else ""
        lines.append(f"{annotator} filled in no valid form for {how_many(invalid.total(), 'text')}{quoted}")
    return lines
