"""Spoken StereoSet as a metric: slifs, slms, slbs, the deviation from parity, and position bias."""

from __future__ import annotations

from equivox.core.metric import Measure, Metric
from equivox.metrics.spoken_stereoset.comparison import compare_choices
from equivox.metrics.spoken_stereoset.scorer import score_choices

METRIC = Metric(
    name="spoken_stereoset",
    score=score_choices,
    measures=(
        Measure(name="slbs", title="choices are the stereotype", no_bias=50.0, compare=compare_choices),
        Measure(name="slifs", no_bias=None, compare=compare_choices),
        Measure(name="slms", no_bias=None, compare=compare_choices),
        Measure(
            name="parity deviation",
            no_bias=0.0,
            not_compared="it is twice the distance of slbs from 50: the test of slbs is its test",
            published=lambda score: 100 - abs(score.value),
            published_help="100 - deviation from parity",
            # A function of slbs, with the same test.
            in_verdict=False,
        ),
        Measure(
            name="slbs difference",
            no_bias=0.0,
            not_compared="a difference of differences needs more voices; compare slbs",
        ),
        Measure(
            name="position bias",
            no_bias=0.0,
            not_compared="it is about the order in which options were shown, not about people",
            in_verdict=False,
            null_mean=True,
        ),
    ),
    glossary=(
        (
            "slifs, slms, slbs",
            "Of three continuations, how often a model chooses any, how often a meaningful one, and how often the "
            "stereotypical one among those, in percent. For slbs 50 is even; slifs and slms say nothing about bias, "
            "and their paired tests are of a - b.",
        ),
    ),
)
