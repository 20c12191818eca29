"""Formatting of numbers, the same everywhere; an undefined number is a dash, never a digit."""

from __future__ import annotations

import math

DASH = "—"


def percent(value: float) -> str:
    """Format a score or share that is already in percent.

    >>> percent(6.2), percent(100.0), percent(float("nan")), percent(-0.001)
    ('6.20', '100.00', '—', '0.00')
    """
    if not math.isfinite(value):
        return DASH
    return f"{value + 0.0:.2f}" if abs(value) >= 0.005 else "0.00"


def score_value(value: float, unit: str) -> str:
    """Format a score in its unit: two decimals for percent, three for other units, one from 1,000 up.

    A small number is not shown as 0, which would read as no difference; what rounding leaves is.

    >>> score_value(66.666, "percent of all instances"), score_value(-0.1234, "correlation"), score_value(2345.6, "EUR")
    ('66.67', '-0.123', '2,345.6')
    >>> score_value(0.00042, "seconds"), score_value(-1e-17, "seconds")
    ('0.00042', '0.000')
    """
    if unit.startswith("percent"):
        return percent(value)
    if not math.isfinite(value):
        return DASH
    if abs(value) < 0.0005:
        return f"{value:.2g}" if abs(value) > 1e-12 else "0.000"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.3f}"


def score_interval(low: float, high: float, unit: str) -> str:
    """Format an interval in a score's unit; a negative end is separated by "to".

    >>> score_interval(-0.1, 0.25, "correlation"), score_interval(1.0, 2.0, "percent")
    ('-0.100 to 0.250', '1.00 to 2.00')
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return DASH
    return f"{score_value(low, unit)} to {score_value(high, unit)}"


def p_value(value: float) -> str:
    """Format a p-value with three decimals, never as zero, which a published p of b/B can be.

    >>> p_value(0.0001), p_value(0.04321), p_value(1.0), p_value(0.0), p_value(float("nan"))
    ('<0.001', '0.043', '1.000', '<0.001', '—')
    """
    if not math.isfinite(value):
        return DASH
    return "<0.001" if 0 <= value < 0.001 else f"{value:.3f}"


UNTOLD = "?"
"""The mark of a score without a finding whose design may have missed one."""

UNEVEN = "†"
"""The mark of a score for which more answers of one group are missing than of another."""


def stars(p: float) -> str:
    """Return the papers' mark of a corrected p-value: * below 0.05, ** below 0.001.

    >>> stars(0.0005), stars(0.02), stars(0.5), stars(float("nan"))
    ('**', '*', '', '')
    """
    return "**" if p < 0.001 else "*" if p < 0.05 else ""


def share(part: int, whole: int) -> str:
    """Format a part of a whole in percent; 100 only if nothing is missing.

    >>> share(3, 4), share(9999, 10_000), share(5, 5), share(0, 0)
    ('75.0 %', '99.9 %', '100 %', '—')
    """
    if whole == 0:
        return DASH
    if part == whole:
        return "100 %"
    return f"{math.floor(1000 * part / whole) / 10:.1f} %"


def shortened(text: str, longest: int = 40) -> str:
    """Return a text in one line, cut with an ellipsis if it is longer than `longest` characters.

    >>> shortened("a nurse", 7), shortened("the nurse", 7)
    ('a nurse', 'the nu…')
    """
    plain = " ".join(text.split())
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


def in_words(seconds: float) -> str:
    """Return a length of time in its largest unit.

    >>> in_words(42.4), in_words(200), in_words(7200), in_words(400_000)
    ('42 s', '3 min', '2 h', '5 days')
    """
    for unit, length in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
