"""Whatever a server sends: one response per request, stored as it is or failed with its reason, and no more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_requests import made_request as request

from equivox.engines.endpoint import EndpointEngine, EndpointSettings
from equivox.run.store import Store, response_schema

ODD_TEXT = st.one_of(
    st.text(st.characters(exclude_categories=[])),  # lone surrogates, NUL and the like among them
    st.sampled_from(["", "\ud800", "\x00", "\u202e", "<think>", "a" * 100_000, "NaN", "null"]),
)
ODD = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(10**40), 10**40), st.floats(), ODD_TEXT,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(ODD_TEXT, inner, max_size=3)),
    max_leaves=6,
)  # fmt: skip


def fields(**known: Any) -> st.SearchStrategy[dict[str, Any]]:
    """An object with some of its fields as they should be, some odd, and some missing."""
    return st.fixed_dictionaries(
        {}, optional={name: st.one_of(usual, ODD) for name, usual in known.items()} | {"more": ODD}
    )  # fmt: skip


MESSAGE = fields(role=st.just("assistant"), content=ODD_TEXT, refusal=st.none(), reasoning_content=ODD_TEXT)
CHOICE = fields(
    index=st.just(0), finish_reason=st.sampled_from(["stop", "length", "content_filter", "bored"]), message=MESSAGE,
    logprobs=st.none(),
)  # fmt: skip
USAGE = fields(prompt_tokens=st.integers(0, 99), completion_tokens=st.integers(0, 99), total_tokens=st.integers(0, 99))
COMPLETION = fields(
    id=st.just("x"), object=st.just("chat.completion"), created=st.just(0), model=ODD_TEXT, usage=USAGE,
    choices=st.lists(CHOICE, max_size=2),
)  # fmt: skip
ERROR = fields(error=fields(message=ODD_TEXT, code=ODD_TEXT, type=ODD_TEXT))
BODY = st.one_of(
    COMPLETION.map(lambda document: json.dumps(document).encode()),
    ERROR.map(lambda document: json.dumps(document).encode()),
    ODD.map(lambda document: json.dumps(document).encode()),
    st.binary(max_size=200),
    ODD_TEXT.map(lambda text: text.encode("utf-16", "surrogatepass")),
)
STATUS = st.sampled_from([200, 200, 200, 200, 204, 301, 400, 401, 402, 403, 404, 408, 409, 418, 422, 429, 500, 503])
KIND = st.sampled_from(
    ["application/json", "text/html", "application/octet-stream", "application/json; charset=latin-1"]
)


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(status=STATUS, body=BODY, kind=KIND)
def test_any_answer_of_a_server_is_a_response(
    tmp_path_factory: pytest.TempPathFactory, status: int, body: bytes, kind: str
) -> None:
    def answer(asked: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, content=body, headers={"content-type": kind})

    settings = EndpointSettings(model_name="m", base_url="http://server.test/v1", max_retries=0)
    engine = EndpointEngine(settings, httpx2.MockTransport(answer))
    responses = list(engine.generate([request(0), request(1)]))
    assert sorted(response.key for response in responses) == ["key0", "key1"]
    folder: Path = tmp_path_factory.mktemp("store")
    with Store(folder, response_schema()) as store:
        for response in responses:
            assert (response.text is None) == (response.error is not None)
            assert response.error is None or ("\n" not in response.error and len(response.error) < 400)
            store.append(vars(response))
    kept = {record["key"]: record for record in Store(folder, response_schema()).records()}
    for response in responses:
        text = response.text
        known = None if text is None else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        assert kept[response.key]["text"] == known
    if status != 200:
        assert all(response.text is None for response in responses) or 200 < status < 300
    engine.close()
