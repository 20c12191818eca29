"""What failed in a run, a line for each reason: requests to the model, and texts that the annotator could not do."""

from __future__ import annotations

from collections import Counter

from equivox.report.numbers import how_many, shortened


def request_failures(failures: Counter[str], shown: int) -> list[str]:
    """Return what requests to the model failed on, the most frequent `shown` errors first, and how many are left."""
    lines = [f"failed {how_many(count, 'time')}: {error}" for error, count in failures.most_common(shown)]
    if len(failures) > shown:
        lines.append(f"… and {len(failures) - shown} other reasons, see `responses` in the run")
    return lines


def annotation_failures(
    annotator: str, failures: Counter[str], invalid: Counter[str], *, example: bool, shown: int = 5
) -> list[str]:
    """Return what an annotator failed on, by its errors, and how often what it wrote was no valid form.

    With `example` the most frequent invalid form is quoted; it may hold words of an answer.
    """
    lines = [f"{annotator} failed {how_many(count, 'time')}: {error}" for error, count in failures.most_common(shown)]
    for written, _ in invalid.most_common(1):
        quoted = f", such as: {shortened(written, 80)}" if example else ""
        lines.append(f"{annotator} filled in no valid form for {how_many(invalid.total(), 'text')}{quoted}")
    return lines
