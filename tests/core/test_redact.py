"""What is private is cut out of what is published, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equivox.core.redact import LEFT_OUT, known_secrets, redacted, redacted_text


@pytest.mark.parametrize(
    ("name", "value", "public"),
    [
        ("api_key", "sk-1", LEFT_OUT),
        ("X-Api-Key", "sk-1", LEFT_OUT),
        ("Authorization", "Bearer abc", LEFT_OUT),
        ("hf_token", "hf_abc", LEFT_OUT),
        ("user_password", "hunter2", LEFT_OUT),
        ("max_tokens", 512, 512),
        ("api_key", "", ""),
        ("token_limit_field", "max_tokens", "max_tokens"),
        ("api_key_env", "OPENAI_API_KEY", "OPENAI_API_KEY"),
        ("base_url", "https://api.host.org/v1", "https://api.host.org/v1"),
        ("base_url", "http://10.0.0.1:8000/v1", "http://10.0.0.1:8000/v1"),
        ("base_url", "https://me:pw@api.host.org:8443/v1?key=abc#x", "https://api.host.org:8443/v1"),
        ("model", "org/model", "org/model"),
        ("chat_template", "/home/me/secret project/template.jinja", "template.jinja"),
        ("template", "~/template.jinja", "template.jinja"),
        ("template", "C:\\Users\\me\\template.jinja", "template.jinja"),
        ("template", "file:///home/me/template.jinja", "template.jinja"),
        ("said", "he/she, 3/4 and a // b", "he/she, 3/4 and a // b"),
        ("error", "[Errno 2] No such file or directory: '/home/me/clips/a.wav'", "[Errno 2] No such file or directory: "
         "'a.wav'"),
        ("error", "404 of https://me:pw@host/v1/chat?key=abc, gone", "404 of https://host/v1/chat, gone"),
    ],
)  # fmt: skip
def test_what_is_cut(name: str, value: object, public: object) -> None:
    assert redacted({name: value}) == {name: public}


def test_settings_are_searched_to_the_bottom() -> None:
    deep = {"extra_body": {"auth": [{"token": "abc"}, {"paths": ["/home/me/a", "b"]}]}, "n": None, "on": True}
    assert redacted(deep) == {
        "extra_body": {"auth": [{"token": LEFT_OUT}, {"paths": ["a", "b"]}]}, "n": None, "on": True,
    }  # fmt: skip


@given(st.text(st.characters(exclude_characters="/\\\0")))
def test_text_without_places_stays_as_it_is(text: str) -> None:
    assert redacted_text(text) == text


@given(st.text())
def test_twice_is_once(text: str) -> None:
    once = redacted_text(text)
    assert redacted_text(once) == once


def test_secrets_are_those_of_the_environment() -> None:
    environment = {
        "OPENAI_API_KEY": "sk-0123456789", "HF_TOKEN": "hf_0123456789", "MY_SECRET": "short", "HOME": "/home/me",
        "SSH_KEY": "/home/me/.ssh/key", "KEYBOARD": "qwertyuiop",
    }  # fmt: skip
    assert set(known_secrets(environment)) == {"OPENAI_API_KEY", "HF_TOKEN"}
