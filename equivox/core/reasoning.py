"""Reasoning that a model writes into its text before the answer, by the marks of chat templates and servers.

The marks are those of the chat templates on the Hub and of vLLM's reasoning parsers, also as they look after a server
has removed special tokens. A new kind of mark is one line of `MARKS`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TAGS = (
    "think", "thinking", "thought", "reasoning", "seed:think", "mm:think", "think_fast", "think_faster",
    "ifm|think", "ifm|think_fast", "ifm|think_faster", "longcat_think",
)  # fmt: skip
"""Names of tags that hold reasoning, as in `<think>…</think>`."""


class Mark(NamedTuple):
    """Where reasoning begins and ends, as regular expressions.

    A text that ends reasoning without having begun it holds reasoning from its start, because chat templates put the
    opening mark into the prompt. Where `alone` is False, this does not hold: the end is an ordinary sentence.
    """

    begin: str
    end: str
    alone: bool = True


MARKS = (
    *(Mark(f"(?i:<{re.escape(tag)}>)", f"(?i:</{re.escape(tag)}>)") for tag in TAGS),
    Mark(r"\[THINK\]", r"\[/THINK\]"),  # Mistral
    Mark(r"<\|channel\|>analysis<\|message\|>", r"<\|channel\|>final<\|message\|>"),  # gpt-oss
    Mark(r"\Aanalysis(?=[A-Z])|\Aanalysis(?=.*assistantfinal)|assistantanalysis", "assistantfinal"),  # its bare words
    Mark(r"<\|channel>(?:\s*thought\b)?", r"<channel\|>"),  # Gemma
    Mark(r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),  # Cohere
    Mark(r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),  # Apertus
    Mark(r"<\|open\|>\s*think\s*<\|sep\|>", r"<\|close\|>\s*think\s*<\|sep\|>"),  # Kimi K3
    Mark("◁think▷", "◁/think▷"),  # Kimi
    Mark(r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),  # OpenThinker
    Mark(r"\A\s*Here(?:'s| is) my thought process:", r"Here(?:'s| is) my response:", alone=False),  # Granite
)
_ANY = re.compile("|".join(f"(?P<b{n}>{mark.begin})|(?P<e{n}>{mark.end})" for n, mark in enumerate(MARKS)), re.DOTALL)
_POSSIBLE = re.compile(r"[<\[◁]|assistant|\A\s*(?:analysis|Here)")
"""Every mark has one of these; most answers have none, and this search is a hundred times faster."""
_AROUND = re.compile(
    r"\A\s*(?:<(?:answer|response)>|<\|START_(?:RESPONSE|TEXT)\|>|<\|open\|>\s*response\s*<\|sep\|>)"
    r"|(?:</(?:answer|response)>|<\|END_(?:RESPONSE|TEXT)\|>|<\|close\|>\s*(?:response|message)\s*<\|sep\|>)"
)
"""Marks around the answer, which some templates write behind the reasoning."""


REASONING_LEFT = (
    r"(?i)</?[a-z_ ]*(?:think|thought|reason|reflect|analysis|scratchpad|monologue)[a-z_ ]*>|<\|[a-z_]*(?:think|reason)"
    r"|\A\s*(?:(?:okay|ok|alright|hmm+|well|so)[,.]?\s+)*(?:the user (?:is|wants|asks|has|says)|i'm asked|we need to"
    r"|i (?:need|have|should|must) to |let me (?:think|see|start|analy|consider|break)|let's (?:think|see|analy|break)"
    r"|first,? i (?:need|should)|(?:my )?(?:thinking|thought) process)"
)
"""Text that looks like reasoning in an unknown mark, or without one, as a regular expression (RE2)."""


def split_reasoning(text: str, pattern: str = "") -> tuple[str, str | None]:
    r"""Return the answer without its reasoning, and the reasoning; None if there is none.

    Reasoning without an end reaches to the end of the text: such a response was cut off before its answer. Reasoning
    whose opening mark was in the prompt begins with the text. `pattern` is a regular expression that matches
    reasoning in another mark.

    >>> split_reasoning("<think>Which one?</think>A nurse.")
    ('A nurse.', 'Which one?')
    >>> split_reasoning("hm</think> A nurse.")
    ('A nurse.', 'hm')
    >>> split_reasoning("<|channel>thought\nso much to consider")
    ('', 'so much to consider')
    >>> split_reasoning("analysisWhich one?assistantfinalA nurse.")
    ('A nurse.', 'Which one?')
    >>> split_reasoning("A nurse.")
    ('A nurse.', None)
    >>> split_reasoning("Plan: who? Reply: A nurse.", "Plan:.*?Reply:")
    ('A nurse.', 'Plan: who? Reply:')
    """
    if pattern and (parts := [match[0] for match in re.finditer(pattern, text, re.DOTALL) if match[0]]):
        answer, more = split_reasoning(re.sub(pattern, "", text, flags=re.DOTALL))
        return answer.strip(), "\n\n".join([*parts, *filter(None, [more])])
    if not _POSSIBLE.search(text):
        return text, None
    answers: list[str] = []
    reasoning: list[str] = []
    open_marks: list[int] = []
    position = 0
    for match in _ANY.finditer(text):
        kind, number = str(match.lastgroup)[0], int(str(match.lastgroup)[1:])
        inside, begins = bool(open_marks), kind == "b"
        if begins:
            open_marks += [number] * (number not in open_marks)
        elif not MARKS[number].alone and number not in open_marks:
            continue
        else:  # an end without its begin ends all reasoning
            open_marks = open_marks[: open_marks.index(number)] if number in open_marks else []
        if inside and open_marks:
            continue
        if not inside and not begins:
            reasoning += answers
            answers = []
        (answers if begins else reasoning).append(text[position : match.start()])
        position = match.end()
    if position == 0:
        return text, None
    (reasoning if open_marks else answers).append(text[position:])
    answer = _AROUND.sub("", "".join(answers)).strip()
    return answer, "\n\n".join(filter(None, map(str.strip, reasoning)))
