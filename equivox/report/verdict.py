"""The first screen: what runs say, in at most 80 columns and 18 lines. All its words stand in this file.

The outcomes were decided when the runs were scored (`equivox.core.outcomes`). `report/findings.py` chooses the numbers
and `report/checks.py` what to check before relying on them.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from equivox.compare.runs import ComparedRun
from equivox.core.outcomes import OUTCOMES, compute_hidden_gap, compute_smallest_relevant, count_units_needed
from equivox.core.scores import LEVEL, Outcome
from equivox.core.text import how_many
from equivox.report.checks import Check, check_coverage, list_run_checks
from equivox.report.failures import find_unreadable_reply, lost_in
from equivox.report.findings import Rate, TaskVerdict, count_answers, list_verdicts, round_half_up
from equivox.report.notes import write_note
from equivox.report.numbers import shortened

__all__ = ["LABELS", "SHORT", "Rate", "TaskVerdict", "list_verdicts", "write_headline", "write_lines", "write_screen"]

WIDTH, HEIGHT = 80, 18
_POINTS = ("choice", "refusal", "loss", "open")
"""The kinds whose amounts are whole points."""
MOST_VALUES, MOST_GROUPS, MOST_MEASURES = 3, 9, 4
LABELS: Mapping[Outcome, str] = {
    "difference": "DIFFERENCE FOUND", "no_result": "NO RESULT", "too_few_data": "TOO FEW DATA",
    "no_difference": "NO DIFFERENCE SEEN",
}  # fmt: skip
"""The outcomes as every output shows them."""
SHORT: Mapping[Outcome, str] = {
    "difference": "differs", "no_result": "no result", "too_few_data": "too few data",
    "no_difference": "no difference seen",
}  # fmt: skip
_OTHERS: Mapping[Outcome, str] = {
    "difference": "; {} with a difference", "no_result": "; {} without a result",
    "too_few_data": "; {} with too few data", "no_difference": "; {} with no difference seen",
}  # fmt: skip
_HEADLINES = {
    "value": "{most} {says} more often than {least}",
    "mean": "{value} is higher for {most} than for {least}",
    "refusal": "{most} {are} refused more often than {least}",
    "loss": "more answers about {most} are lost than about {least}",
    "preference": "{gap} of 100 {value}, where 50 is even",
    "count": "{gap} {value}, where chance gives about {chance}",
    "measures": "{n} of {all} measures differ, most surely {value}: higher for {most}",
}
_CHECKS = {
    "complete": "all {n:,} answers could be read, none was refused",
    "lost": "{n:,} of {of:,} answers do not count: {reasons}",
    "reply": 'the judge wrote "{reply}" instead of the form',
    "repair": "repair the judge, then repeat the command with --redo-judge",
    "also": "also: {headline}",
    "loss_gap": "groups may lose answers unequally: {losses}",
    "rest": "too many answers are missing to compare the rest",
    "hidden": "gaps below about {amount} can hide among {n:,} {units}",
    "another_model": "{model} answered instead of the requested model",
    "sample": "made-up sample data, not the published corpus",
    "rules_on_free_text": "word lists read the answers; nobody checked them (equivox label)",
    "judges_itself": "the judge is the tested model itself; nobody checked it (equivox label)",
    "unchecked_judge": "the judge is {judge}; nobody checked it (equivox label)",
    "audited": "{audit}",
    "unlabelled": "no label is about {what}",
    "cut_prompt": "the server cut {n:,} of {of:,} prompts: {tokens:,} tokens for {least:,.0f} words or more; raise its "
    "context length, or shorten the prompts",
    "cut_audio": "{n:,} clips of {least:.0f} s or more took as many tokens as {limit_s:.0f} s would: the server "
    "may have cut them; max_audio_seconds={limit_s:.0f}",
    "cut_fixed": "{of:,} clips of {least:.1f} to {most:.1f} s took {tokens:,} tokens each: nothing shows that the "
    "model heard the long ones to their end",
    "reasoning_left": "{n:,} of {of:,} answers look like reasoning (--sampling reasoning=REGEX removes it)",
    "recorded_apart": "groups were recorded differently, at {rate:,} Hz: {shares}",
    "option": "{option}",
    "asked_again": "requests that failed first and succeeded later: {shares}",
    "note": "{note}",
    "same_request": "{n:,} units of {corpus} repeat the requests of another unit and add no evidence",
    "without_group": "{n:,} samples of {corpus} have no group and are left out",
    "limit": "cut to {n:,} samples a task",
    "selected": "only rows of {corpus} whose {rows}",
}
"""The sentence of each check, by its code."""


def write_screen(runs: Sequence[ComparedRun]) -> str:
    """Return the first screen of one run or several, as text without colours."""
    verdicts = [list_verdicts(run) for run in runs]
    right = write_size(runs, verdicts)
    if len(runs) > 1:
        left, body, checks = f"{len(runs)} models", _write_models(runs, verdicts), list_common_checks(runs)
    elif len(verdicts[0]) == 1:
        left, right = f"{runs[0].model} · {verdicts[0][0].title}", write_asked(verdicts[0][0])
        checks = list(list_checks(verdicts[0][0]))
        body = _write_one(verdicts[0][0], _count_lines(checks))
    else:
        checks = list(list_run_checks(runs[0]))
        left, body = runs[0].model, _write_tasks(verdicts[0], HEIGHT - 7 - min(2, len(checks)))
    left = shortened(f"equivox · {left}", WIDTH)
    head = [f"{left}{right:>{WIDTH - len(left)}}"] if len(left) + len(right) < WIDTH else [left, f"{right:>{WIDTH}}"]
    where = runs[0].folder if len(runs) == 1 else "RUN"
    commands = [f"  equivox view {where}      the answers side by side"]
    commands += [f"  equivox {'compare RUNS' if len(runs) > 1 else f'score {where}'} --details      every number"]
    shown = _write_checks(checks, HEIGHT - len(head) - len(body) - len(commands) - 2)
    return "\n".join(line.rstrip() for line in [*head, "", *body, *shown, "", *commands])


def write_lines(run: ComparedRun) -> str:
    """Return a line per task of a run: its name, its outcome and the sentence behind it."""
    rows = [(verdict.score.task, LABELS[verdict.outcome], write_headline(verdict)) for verdict in list_verdicts(run)]
    wide, label = (max((len(row[column]) for row in rows), default=0) for column in (0, 1))
    return "\n".join(f"{task:<{wide}}  {outcome:<{label}}  {headline}" for task, outcome, headline in rows)


def write_headline(verdict: TaskVerdict) -> str:
    """Return the sentence behind the outcome of one task."""
    score, (_, high) = verdict.score, verdict.interval
    if verdict.outcome == "difference":
        return _write_finding(verdict)
    constant = f"{verdict.measure_title}: " if verdict.kind == "measures" else ""
    if not score.defined:
        counts = verdict.coverage
        if verdict.outcome == "no_result" and 5 * (counts.answered - counts.parsed) > counts.requested:
            return f"the judge could not read {counts.answered - counts.parsed:,} of {counts.requested:,} answers"
        if verdict.outcome == "no_result":
            return shortened(write_note(score.undefined_reason), 160)
        same = f'"{verdict.rates[0].name}"' if len(verdict.rates) == 1 else "the same"
        constant = f"every answer was {same}; "
    if not math.isfinite(high):
        return f"{constant}this test can find a difference but never rule one out"
    bound = write_amount(verdict, math.ceil(high) if high > 5 or verdict.kind in _POINTS else high)
    if verdict.outcome == "no_difference":
        return f"{constant}any gap is most likely below {bound}"
    needed = count_units_needed(score, verdict.run.options.look_for)
    cure = f"; about {_round_up(needed):,} {verdict.unit_name} would settle it" if needed else ""
    return f"{constant}a gap of up to {bound} could hide{cure}"


def list_checks(verdict: TaskVerdict) -> Iterator[Check]:
    """Yield what to know before relying on the verdict of one task, then what holds for the whole run."""
    run, score = verdict.run, verdict.score
    yield from list_task_checks(verdict)
    yield from list_run_checks(run)
    if verdict.outcome == "difference":
        hidden = compute_hidden_gap(score)
        if hidden > compute_smallest_relevant(score, run.options.look_for):
            amount = write_amount(verdict, hidden)
            yield Check("note", "hidden", {"amount": amount, "n": score.n_units, "units": verdict.unit_name})
    for words in dict.fromkeys(write_note(note) for each in verdict.scores for note in each.notes):
        if words:
            yield Check("note", "note", {"note": words})


def list_task_checks(verdict: TaskVerdict) -> Iterator[Check]:
    """Yield what to know before relying on the verdict of one task, without what holds for the whole run."""
    run, score = verdict.run, verdict.score
    yield check_coverage(verdict.coverage)
    if verdict.outcome == "no_result" and (reply := find_unreadable_reply(run.folder, run.annotator)) is not None:
        yield Check("why", "reply", {"reply": reply})
        yield Check("do", "repair")
    for other in verdict.scores[1:]:
        if other.outcome == "difference" and other.role in ("refusal", "loss"):
            yield Check("check", "also", {"headline": _write_finding(TaskVerdict(run, [other]))})
        elif other.outcome == "no_result" and score.role != "outcome":
            yield Check("check", "rest")
            break
    if losses := lost_in(score.task, [other for other in run.scores if other.outcome != "difference"]):
        yield Check("check", "loss_gap", {"losses": losses})


def write_check(check: Check) -> str:
    """Return the sentence of a check."""
    return _CHECKS[check.code].format(**check.values)


def say_value(verdict: TaskVerdict, group: str, value: str, verb: str = "get") -> str:
    """Return the phrase behind a group: that of the task for a value (`are invited`), or the value in quotes."""
    phrases = {} if verdict.declared is None else verdict.declared.says
    quoted = f'"{value}"'
    if verb:
        quoted = f"{verb}{'' if verdict.is_plural(group) else 's'} {quoted}"
    return phrases.get(value) or quoted


def write_lead(verdicts: Sequence[Sequence[TaskVerdict]]) -> tuple[str, str]:
    """Return the label and the first sentence about the verdicts of each model; the label may be empty."""
    if len(verdicts) > 1:
        differing = sum(any(v.outcome == "difference" for v in each) for each in verdicts)
        where = f"in {differing} of {len(verdicts)} models"
        return (LABELS["difference"], where) if differing else ("", "No model shows a difference")
    (each,) = verdicts
    if not each:
        return LABELS["no_result"], "no task of this run was tested; the tables describe it"
    if len(each) == 1:
        return LABELS[each[0].outcome], write_headline(each[0])
    counts = {outcome: sum(v.outcome == outcome for v in each) for outcome in OUTCOMES}
    outcome, *others = (outcome for outcome in OUTCOMES if counts[outcome])
    also = "".join(_OTHERS[other].format(counts[other]) for other in others)
    return LABELS[outcome], f"in {counts[outcome]} of {how_many(len(each), 'task')}{also}"


def write_size(runs: Sequence[ComparedRun], verdicts: Sequence[Sequence[TaskVerdict]]) -> str:
    """Return how many tasks and answers the verdicts of each run are about."""
    n_tasks, n_answers = max(map(len, verdicts), default=0), sum(count_answers(run) for run in runs)
    return f"{how_many(n_tasks, 'task')}, {how_many(n_answers, 'answer')}"


def write_gap(verdict: TaskVerdict) -> tuple[str, str, str]:
    """Return the name of the number that decides, the number with its interval, and what chance says of it."""
    low, high = verdict.interval
    known = math.isfinite(low) and math.isfinite(high)
    likely = f"likely {_write_number(low)} to {_write_number(high)}" if known else "no interval"
    name, amount = "gap", f"{write_amount(verdict, verdict.gap)}, {likely}"
    if verdict.kind == "count":
        name, amount = "count", f"{_write_number(verdict.gap)}, chance gives {_write_number(verdict.score.null_value)}"
    if verdict.kind == "preference":
        away = f", which is {_write_number(low)} to {_write_number(high)} from even" if known else ""
        name, amount = "overall", f"{_write_number(verdict.gap)} of 100{away}"
    return name, amount, write_chance(verdict.score.q)


def write_rate(verdict: TaskVerdict, number: float) -> str:
    """Return the number of a group: a share in percent, or a mean in its unit."""
    if verdict.kind == "mean":
        return f"{_write_number(number)} {_unit(verdict)}".rstrip()
    return f"{round_half_up(number)} %"


def write_asked(verdict: TaskVerdict) -> str:
    """Return how many units, groups and answers a task has, in words."""
    n_units, n_groups = verdict.count_units()
    groups = [how_many(n_groups, "group")] if n_groups else []
    return ", ".join([f"{n_units:,} {verdict.unit_name}", *groups, how_many(verdict.coverage.requested, "answer")])


def write_amount(verdict: TaskVerdict, amount: float) -> str:
    """Return an amount in its unit: `31 points`, `23 of 100`, `26,000 EUR`."""
    if verdict.kind in _POINTS:
        whole = round_half_up(amount)
        return f"{whole} {'of 100' if verdict.kind == 'open' else 'point' if whole == 1 else 'points'}"
    return f"{_write_number(amount)} {_unit(verdict)}".rstrip()


def list_common_checks(runs: Sequence[ComparedRun]) -> list[Check]:
    """Return the checks of several runs, each once."""
    return list({(check.code, str(check.values)): check for run in runs for check in list_run_checks(run)}.values())


def _write_finding(verdict: TaskVerdict) -> str:
    if verdict.kind == "measures":
        surest = verdict.measures[0]
        differ = sum(measure.outcome == "difference" for measure in verdict.measures)
        names = {"value": surest.measure_title, "most": surest.rates[0].groups[0]}
        return _HEADLINES["measures"].format(n=differ, all=len(verdict.measures), **names)
    moved = [rate for rate in verdict.rates[:MOST_VALUES] if rate.spread > 0]
    if verdict.kind == "open" and moved:
        wins: dict[str, str] = {}
        for rate in moved:
            wins.setdefault(rate.groups[0], rate.name)
        two = len(moved[0].by_group) == 2
        often = "more often" if two else "most often, in these answers"
        (first, value), *others = list(wins.items())[: 1 + two]
        also = [f"{group} {say_value(verdict, group, other, verb='')}" for group, other in others]
        return ", ".join([f"{first} {say_value(verdict, first, value)} {often}", *also])
    gap, chance = _write_number(verdict.gap), _write_number(round_half_up(verdict.score.null_value or 0))
    facts = {"gap": gap, "chance": chance, "value": verdict.measure_title}
    if moved and verdict.kind not in ("count", "preference"):
        most, value = moved[0].groups[0], moved[0].name
        facts |= {"value": value, "most": most, "least": moved[0].groups[-1], "says": say_value(verdict, most, value)}
        facts["are"] = "are" if verdict.is_plural(most) else "is"
    return _HEADLINES["value" if verdict.kind in ("choice", "open") else verdict.kind].format(**facts)


def _count_lines(checks: Sequence[Check]) -> int:
    """Return how many lines to keep for what speaks against a verdict: 1 to 5."""
    against = [check for check in checks if check.mark not in ("ok", "note")]
    return min(5, max(1, sum(len(_indent(check.mark, write_check(check))) for check in against)))


def _write_one(verdict: TaskVerdict, n_checks: int) -> list[str]:
    """Return the lines of the screen of one task; values make room for `n_checks` lines of checks."""
    headline, label = write_headline(verdict), LABELS[verdict.outcome]
    one_line = len(label) + len(headline) < WIDTH - 5
    head = [f"  {label}   {headline}"] if one_line else [f"  {label}", *_wrap(headline)]
    if verdict.outcome == "no_result":
        return head
    gap = [] if verdict.kind == "measures" else list(_write_gap(verdict))
    # Title, commands, blank lines and the line about further checks take ten lines.
    numbers, most = _write_numbers(verdict), HEIGHT - 10 - len(head) - n_checks
    if len(numbers) + len(gap) > most and verdict.kind == "open":
        gap = gap[:-1]  # the explanation of a distance
    shown = numbers[: max(2, most - len(gap))] if verdict.kind in ("open", "count", "measures") else numbers
    return [*head, "", *(f"      {line}" for line in (*shown, *gap))]


def _write_checks(checks: Sequence[Check], n_lines: int) -> list[str]:
    """Return the lines about what to check, at most `n_lines`; without room, those that are `ok` are left out first."""
    written = [(check.mark, _indent(check.mark, write_check(check))) for check in checks]
    n_lines -= 2
    while sum(len(lines) for _, lines in written) > n_lines - (len(written) < len(checks)):
        if not written:
            return []
        good = next((place for place, (mark, _) in enumerate(written) if mark == "ok"), -1)
        del written[good]
    left = len(checks) - len(written)
    more = [f"{'':<6} {how_many(left, 'more check')}: equivox report"] if left else []
    return ["", "  Before you rely on it", *(f"      {line}" for _, lines in written for line in lines),
            *(f"      {line}" for line in more)] if checks else []  # fmt: skip


def _write_numbers(verdict: TaskVerdict) -> list[str]:
    """Return a line per group, or per value or measure where several are shown."""
    if verdict.kind == "measures":
        return _write_measures(verdict)
    rates = verdict.rates[: MOST_VALUES if verdict.kind in ("open", "count") else 1]
    if not rates:
        return []
    groups = sorted(rates[0].by_group)
    percent = verdict.kind != "mean"
    top = 100.0 if percent and len(rates) == 1 else max(max(rate.by_group.values()) for rate in rates)

    show = partial(write_rate, verdict)
    if len(rates) == 1 and len(groups) <= MOST_GROUPS and verdict.kind != "count":
        wide, cells = max(map(len, groups)), {group: show(rates[0].by_group[group]) for group in groups}
        most = max(map(len, cells.values()))
        return [f"{g:<{wide}}  {cells[g]:>{most}}  {_draw_bar(rates[0].by_group[g], top, 28)}" for g in groups]
    wide = max(len(shortened(rate.name, 24)) for rate in rates)
    if len(groups) == 2:
        lines = [f"{'':<{wide}}  {groups[0]:<18} {groups[1]}"]
        for rate in rates:
            cells_of = [f"{show(rate.by_group[g]):>5} {_draw_bar(rate.by_group[g], top, 11):<12}" for g in groups]
            lines.append(f"{shortened(rate.name, 24):<{wide}}  {' '.join(cells_of)}")
        return lines
    return [
        f"{shortened(rate.name, 24):<{wide}}  {rate.groups[0]} {show(rate.by_group[rate.groups[0]])}, others "
        f"{round_half_up(rate.by_group[rate.groups[-1]])} to {show(rate.by_group[rate.groups[1]])}"
        for rate in rates
    ]


def _write_measures(verdict: TaskVerdict) -> list[str]:
    """Return a line per measure of a task, those that differ or are the surest: both numbers and the likely gap."""
    differing = [measure for measure in verdict.measures if measure.outcome == "difference"]
    shown = (differing or verdict.measures)[:MOST_MEASURES]
    groups = sorted(shown[0].rates[0].by_group)
    lines = [f"{'':<26}{''.join(f'{shortened(group, 11):<12}' for group in groups)}likely gap"]
    for measure in shown:
        low, high = measure.interval
        numbers = "".join(f"{write_amount(measure, measure.rates[0].by_group[g]):<12}" for g in groups)
        likely = f"{_write_number(low)} to {_write_number(high)}" if math.isfinite(high) else "–"
        lines.append(f"{shortened(measure.measure_title, 25):<26}{numbers}{likely}")
    left = len(verdict.measures) - len(shown)
    return [*lines, *([f"and {left} more: {len(differing)} differ in all"] if left else [])]


def _write_gap(verdict: TaskVerdict) -> Iterator[str]:
    """Yield the gap with its interval and what chance says, and what the numbers of a distance mean."""
    if verdict.kind == "count" and verdict.outcome == "difference" and not verdict.rates:
        yield "no single one survives the correction for all that were tested"
    name, amount, chance = write_gap(verdict)
    first = f"{name:<9}{amount}"
    yield from [f"{first}      {chance}"] if len(first) + len(chance) < WIDTH - 12 else [first, f"         {chance}"]
    low, high = verdict.score.missing_bounds
    if verdict.score.coverage.uneven is not None and verdict.kind in _POINTS and math.isfinite(low):
        # One group lacks more answers, and nothing in the interval knows why.
        yield f"         {_write_number(low)} to {_write_number(high)}, depending on what the missing answers would say"
    if verdict.kind == "open":
        yield "         (0: all groups get the same answers, 100: they share none)"


def _write_tasks(verdicts: Sequence[TaskVerdict], n_lines: int) -> list[str]:
    """Return at most `n_lines` about several tasks of one model, or a line if none was tested."""
    label, where = write_lead([verdicts])
    if not verdicts:
        return [f"  {label}   {where}"]
    lines = [f"  {label}   {where}", ""]
    says = "who gets more" if verdicts[0].outcome == "difference" else ""
    lines.append(f"      {'':<22}{'gap':<13}{'likely':<20}{says}")
    most = n_lines - len(lines)
    n_shown = len(verdicts) if len(verdicts) <= most else most - 1
    for verdict in verdicts[:n_shown]:
        low, high = verdict.interval
        likely = f"{_write_number(low)} to {_write_number(high)}" if math.isfinite(high) else "–"
        gap = "–" if verdict.outcome == "no_result" else write_amount(verdict, verdict.gap)
        says = SHORT[verdict.outcome]
        if verdict.outcome == "difference" and verdict.kind not in ("count", "preference") and verdict.rates:
            says = f"{verdict.rates[0].groups[0]}: {verdict.rates[0].name}"
        lines.append(f"      {shortened(verdict.title, 21):<22}{gap:<13}{likely:<20}{shortened(says, 19)}")
    return [*lines, *[f"      and {len(verdicts) - n_shown} more tasks"] * (n_shown < len(verdicts))]


def _write_models(runs: Sequence[ComparedRun], verdicts: Sequence[Sequence[TaskVerdict]]) -> list[str]:
    """Return the lines about several models: how many tasks have which outcome, and the largest difference."""
    columns: dict[Outcome, str] = {"difference": "differs", "no_difference": "no difference", "too_few_data": "too few"}
    if any(verdict.outcome == "no_result" for each in verdicts for verdict in each):
        columns["no_result"] = "no result"
    label, where = write_lead(verdicts)
    head = f"  {label}   {where}" if label else f"  {where}"
    wide = min(24, max(len(run.model) for run in runs))
    lines = [head, "", f"  {'tasks by outcome':<{wide}}  {'  '.join(columns.values())}   largest gap"]
    for run, each in list(zip(runs, verdicts, strict=True))[: HEIGHT - 9]:
        counts = "  ".join(
            f"{sum(v.outcome == outcome for v in each):>{len(name)}}" for outcome, name in columns.items()
        )
        largest = max((v for v in each if v.outcome == "difference"), key=lambda v: v.size, default=None)
        gap = "–" if largest is None else f"{_write_number(largest.gap)}, {largest.title}"
        line = f"  {shortened(run.model, wide):<{wide}}  {counts}   "
        lines.append(f"{line}{shortened(gap, WIDTH - len(line))}")
    return [*lines, *[f"  and {len(runs) - HEIGHT + 9} more models"] * (len(runs) > HEIGHT - 9)]


def _write_number(number: float) -> str:
    """Return a number with as many digits as a reader needs: three of a large one, two decimals below 10; NaN: –."""
    if not math.isfinite(number):
        return "–"
    if abs(number) >= 1000:
        return f"{round(number, 3 - len(str(int(abs(number))))):,.0f}"
    return str(round_half_up(number)) if abs(number) >= 10 or number == int(number) else f"{number:.2f}"


def _unit(verdict: TaskVerdict) -> str:
    """Return the unit of a score as printed behind a number; empty for a long one, which stands under --details."""
    unit = verdict.score.unit
    return "points" if unit.startswith("percent") else unit if len(unit) <= 12 and unit != "count" else ""


def write_chance(q: float) -> str:
    if math.isnan(q):
        return ""
    if q >= LEVEL:
        return "chance alone can explain it"
    return f"by chance: {'less than 1 in 1,000' if q < 0.001 else f'{math.ceil(1000 * q)} in 1,000'}"


def _draw_bar(number: float, top: float, width: int) -> str:
    return "█" * max(round(width * number / top), number > 0) if top > 0 else ""


def _wrap(text: str) -> list[str]:
    return [f"  {line}" for line in textwrap.wrap(text, WIDTH - 4)[:3]]


def _indent(mark: str, text: str) -> list[str]:
    return [f"{mark if n == 0 else '':<6} {line}" for n, line in enumerate(textwrap.wrap(text, WIDTH - 13))]


def _round_up(number: int) -> int:
    """Return a number with two digits, rounded up."""
    step = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // step) * step
