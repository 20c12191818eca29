"""Why an answer ended, in one word for all services, and which answers count."""

from __future__ import annotations

from dataclasses import replace

from equivox.core.requests import Response

STOPPED, TRUNCATED, WITHHELD, BROKEN = "stop", "length", "content_filter", "error"
"""The `finish_reason` of a whole answer, of one that the token limit cut off, of a withheld one, and of none."""
_WORDS = {
    STOPPED: "eos eos_token eot end_turn stop_sequence complete completed finish finished normal",
    TRUNCATED: "max_tokens max_output_tokens model_length error_limit model_context_window_exceeded",
    WITHHELD: "refusal safety prohibited_content blocklist spii recitation content_filter content_filtered sensitive "
    "guardrail_intervened error_toxic content_policy_violation data_inspection_failed datainspectionfailed "
    "responsibleaipolicyviolation",
    BROKEN: "error abort insufficient_system_resource network_error",
}
"""The words of Alibaba, Amazon, Anthropic, Azure, Cohere, Google, Mistral, OpenAI, TGI, Zhipu and others."""
_ENDINGS = {word: ended for ended, words in _WORDS.items() for word in words.split()}


def ending(reason: str | None) -> str | None:
    """Return why an answer ended in one word for all services; an unknown reason in lower case.

    >>> ending("MAX_TOKENS"), ending("content_filter: PROHIBITED_CONTENT"), ending("end_turn"), ending(None)
    ('length', 'content_filter', 'stop', None)
    """
    word = (reason or "").partition(":")[0].lower()
    return _ENDINGS.get(word, word) or None


def settle(response: Response) -> Response:
    """Return a response as it counts, whatever its engine sent beside it.

    A withheld answer has no text, even if a part of it arrived: nobody knows the rest. An answer that ended in an
    unknown way, such as `tool_calls`, has failed, and its error names the reason.
    """
    if response.error is not None:
        return replace(response, text=None)
    ended = ending(response.finish_reason)
    if ended in (None, STOPPED, TRUNCATED):
        return replace(response, finish_reason=ended)
    if ended == WITHHELD:
        return replace(response, text="", finish_reason=ended)
    return replace(response, text=None, error=f"the answer ended with finish_reason {response.finish_reason!r:.60}")


def is_withheld(text: str | None, ended: str | None) -> bool:
    """Return whether a provider withheld an answer, which ended so: nobody read it, and nothing follows it."""
    return text == "" and ended == WITHHELD
