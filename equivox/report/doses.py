"""Trends over the doses of a changed voice, and what each dose changed, in words and as tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

from equivox.compare.conditions import ConditionTest
from equivox.compare.doses import POINTS, REFUSED, Trend, dose_trends
from equivox.compare.pairs import PairedTest, open_one
from equivox.compare.runs import ComparedRun
from equivox.core.plain import split_by
from equivox.core.scores import LEVEL
from equivox.core.variants import PITCH, dose_of
from equivox.report.numbers import DASH, not_tested, p_value, score_interval, score_value, share, shortened, stars
from equivox.report.table import Table

DOSES_NOTE = (
    "further by: how much further from no bias the first condition is, less what noise adds to either; interval: 95 %; "
    "p: two-sided, the\nconditions are exchanged within whole clusters; q: after Benjamini–Yekutieli, over all such "
    "tests of doses (* q < 0.05, ** q < 0.001)."
)
TRENDS_NOTE = (
    "per semitone: how far answers move for each semitone up, within speakers and recordings, in points: of all who "
    "get such answers\nwhen the recording is as it is, so many percent more are of the group; gap: how far the groups "
    "are apart on that scale with the\nrecording as it is; the doses: the mean over speakers, of recordings with an "
    "answer at every dose. A number moves in its own unit.\ninterval: 95 %, Student's over speakers; p: two-sided, the "
    "slopes of whole speakers flipped; q: after Benjamini–Yekutieli over the\ntrends of whole tasks, or of attributes "
    "(* q < 0.05, ** q < 0.001)."
)
_CHANGED = {"pitch": "pitch", "voice": "voice (pitch and vocal tract)"}


def trends_of(runs: Sequence[ComparedRun]) -> list[Trend]:
    """Return the trends of the runs that were asked at doses of a changed voice; empty if none was."""
    asked = [run for run in runs if any(dose_of(task.condition) for task in run.tasks)]
    return dose_trends([open_one(run) for run in asked]) if asked else []


def trends_in_words(trends: Sequence[Trend]) -> list[str]:
    """Return a sentence per model, family, dimension and change: which answers move with the voice, and how far."""
    told = []
    for (model, family, _, change), own in split_by(
        trends, lambda trend: (trend.model, trend.family, trend.dimension, trend.change)
    ).items():
        tested = [trend for trend in own if trend.undefined is None and trend.is_whole]
        found = sorted((trend for trend in tested if trend.q < LEVEL), key=lambda trend: trend.p)
        where = f"{model}, {family}, {_CHANGED[change]}"
        several = len(tested) > 1
        lacking = not_tested([trend.undefined for trend in own if trend.is_whole])
        if not tested:
            reason = next((trend.undefined for trend in own), None) or "nothing was asked"
            told.append(f"{where}: no trend could be computed ({shortened(reason, 160)}).")
        elif found:
            counted = f"{len(found)} of {len(tested)} trends are found" if several else "a trend is found"
            told.append(f"{where}: {counted}: with each semitone up {_moved(found[0])}{lacking}.")
        else:
            least = min(trend.p_least for trend in tested)
            few = f"; so few speakers can give no p below {least:.2g}" if least >= LEVEL else ""
            bounded = [trend for trend in tested if not math.isnan(trend.ci_high - trend.ci_low)]
            bound = f" (the widest interval: {_widest(bounded)} per semitone)" if bounded else ""
            none = f"none of {len(tested)} trends is found" if several else "no trend is found"
            told.append(
                f"{where}: {none}{bound}{few}{lacking}. The model may not listen to it, or the design may be too small "
                "to tell."
            )
    return told


def _widest(trends: Sequence[Trend]) -> str:
    """Return the widest interval of some trends with its unit; shares are told before numbers, whose units differ."""
    most = max(trends, key=lambda trend: (trend.unit == POINTS, trend.ci_high - trend.ci_low))
    return f"{score_interval(most.ci_low, most.ci_high, '')} {most.unit}"


def _moved(trend: Trend) -> str:
    """Return in words what moves, how far and where to."""
    by = score_value(abs(trend.slope), "")
    low, high = sorted((abs(trend.ci_low), abs(trend.ci_high)))
    interval = f"95 % interval {score_interval(low, high, '')}" if trend.ci_low * trend.ci_high > 0 else ""
    task = trend.task.partition(":")[2] or trend.task
    named = ", ".join(filter(None, (task, trend.attribute if trend.attribute != REFUSED else "", interval)))
    if trend.attribute == REFUSED:
        return f"{by} points {'more' if trend.slope > 0 else 'fewer'} are refused ({named})"
    if not trend.towards:
        return f"the number is {by} {trend.unit} {'higher' if trend.slope > 0 else 'lower'} ({named})"
    way = "towards" if trend.slope > 0 else "away from"
    return f"answers move {by} points {way} those that {trend.towards} voices get ({named}; gap {_gap(trend)})"


def _gap(trend: Trend) -> str:
    return score_value(trend.gap, "")


def trend_tables(trends: Sequence[Trend]) -> list[Table]:
    """Return the trends of each family, dimension and change as a table, a row for each model, task and attribute."""
    found = []
    for (family, dimension, change), own in split_by(
        trends, lambda trend: (trend.family, trend.dimension, trend.change)
    ).items():
        doses = sorted({dose for trend in own for dose in trend.means})
        rows = [
            [
                *(trend.model, trend.task, trend.attribute or "all", trend.towards or trend.unit),
                score_value(trend.slope, "") + stars(trend.q),
                *(score_interval(trend.ci_low, trend.ci_high, ""), p_value(trend.p), p_value(trend.q), _gap(trend)),
                *(score_value(trend.means[dose], "") if dose in trend.means else DASH for dose in doses),
                *(share(trend.n_used, trend.n_requested), f"{trend.n_clusters:,}"),
            ]
            for trend in own
            if trend.undefined is None
        ]
        left = {
            f"{trend.task}: {trend.n_left_out} speakers have no answers at two doses"
            for trend in own
            if trend.undefined is None and trend.n_left_out > 0
        }
        untested = [
            f"{DASH} {trend.model}, {trend.task}{f', {trend.attribute}' if trend.attribute else ''}: {trend.undefined}"
            for trend in own
            if trend.undefined is not None
        ]
        found.append(
            Table(
                caption=f"{family}, {dimension}: do answers move with the {_CHANGED[change]}? By semitones",
                columns=(
                    *("model", "task", "attribute", "towards", "per semitone", "interval", "p", "q", "gap"),
                    *(f"{dose:+g}" if dose else "0" for dose in doses), "used", "speakers",
                ),
                align="llll" + "r" * (7 + len(doses)),
                rows=rows,
                grouped=2,
                remarks=[*dict.fromkeys(untested), *sorted(left)],
                notes=[TRENDS_NOTE],
            )
        )  # fmt: skip
    return found


def dose_question(test: PairedTest) -> str:
    """Return what a test of a dose asks; empty for a test that is about none."""
    dose = dose_of(test.model_b)
    if dose is None:
        return ""
    kind, semitones = dose
    what = f"the {'pitch' if kind == PITCH else 'pitch with the vocal tract'}"
    again = "making the voice again"
    if not semitones:
        return f"what does {again} change"
    # Without the dose 0 beside it, a dose is compared with the recording as it is.
    return f"what does {what} change" if dose_of(test.model_a) else f"what do {what} and {again} change"


def doses_in_words(tests: Sequence[ConditionTest]) -> list[str]:
    """Return a sentence per model, family and change on what making a voice again, and changing it, does to bias."""
    told = []
    doses = [entry for entry in tests if dose_of(entry[1].model_b)]
    doses.sort(key=lambda entry: _kind_and_change(entry[1].model_b))
    for (model, family, kind, _), own in split_by(
        doses, lambda e: (e[0], e[1].family, *_kind_and_change(e[1].model_b))
    ).items():
        first, n_doses = own[0][1], len({test.model_b for _, test in own})
        tested = [test for _, test in own if test.undefined is None]
        differ = sum(test.q < LEVEL for test in tested)
        lacking = not_tested([test.undefined for _, test in own])
        conditions = first.model_b if n_doses == 1 else f"{n_doses} doses of {kind}"
        told.append(
            f"{model}, {family}, {conditions} against {first.model_a}: "
            + (f"{differ or 'none'} of {len(tested)} tests {'show' if differ > 1 else 'shows'} another bias{lacking}."
               if tested else "nothing could be tested.")
        )  # fmt: skip
    return told


def _kind_and_change(condition: str) -> tuple[str, bool]:
    kind, semitones = dose_of(condition) or ("", 0.0)
    return kind, semitones != 0
