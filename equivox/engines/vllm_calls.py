"""Calls of tools in what vLLM generates, found by vLLM's own parsers (`tool_call_parser=hermes`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equivox.core.calls import answer_with_calls
from equivox.core.errors import RequestError, nearest
from equivox.core.task import Tool


def refuse_unknown_parser(name: str) -> None:
    """Raise RequestError, naming a near one, for a parser that vLLM does not have."""
    from vllm.tool_parsers import ToolParserManager

    try:
        ToolParserManager.get_tool_parser(name)
    except (KeyError, ImportError) as error:
        known = sorted({*ToolParserManager.tool_parsers, *ToolParserManager.lazy_parsers})
        raise RequestError(
            f"`tool_call_parser` {name!r} is none of vLLM's{nearest(name, known)}; `vllm serve --help` lists them"
        ) from error


def with_calls(text: str, name: str, tools: Sequence[Tool], tokenizer: Any) -> str:
    """Return the stored form of an answer: what vLLM's parser finds in the text.

    A parser that fails says that nothing was called. A text that begins a call all the same has one that cannot be
    used, instead of none.
    """
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest, ChatCompletionToolsParam
    from vllm.tool_parsers import ToolParserManager

    offered = [ChatCompletionToolsParam(**tool.as_function) for tool in tools]
    parser = ToolParserManager.get_tool_parser(name)(tokenizer, offered)
    asked = ChatCompletionRequest(messages=[], tools=offered, tool_choice="auto")
    found = parser.extract_tool_calls(text, asked)
    calls = [(call.function.name, call.function.arguments) for call in found.tool_calls]
    begins = getattr(parser, "tool_call_start_token", None)
    if not calls and begins and begins in text:
        calls = [("", text)]
    return answer_with_calls(found.content or "", calls)
