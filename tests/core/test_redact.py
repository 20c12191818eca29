"""What is private is cut out of what is published, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equivox.core.redact import (
    LEFT_OUT,
    cleaned,
    known_secrets,
    redacted,
    redacted_text,
    remember_secrets,
    without_credentials,
)
from equivox.engines import public_settings

PUBLIC = public_settings("endpoint")


@pytest.mark.parametrize(
    ("name", "value", "public"),
    [
        ("api_key", "sk-1", LEFT_OUT), ("X-Api-Key", "sk-1", LEFT_OUT), ("Authorization", "Bearer abc", LEFT_OUT),
        ("hf_token", "hf_abc", LEFT_OUT), ("pass", 4711, LEFT_OUT), ("sig", 0.25, LEFT_OUT),
        ("session_id", "a", LEFT_OUT), ("mode_of_this_server", "fast", LEFT_OUT),
        ("base_url", "https://me:pw@api.host.org:8443/v1?key=abc#x", "https://api.host.org:8443/v1"),
        ("base_url", "https://me:p;w),'@api.host.org/v1", "https://api.host.org/v1"),
        *((name, value, value) for name, value in (
            ("on_or_off", True), ("max_tokens", 512), ("api_key", ""), ("api_key", None), ("model", "org/model"),
            ("token_limit_field", "max_tokens"), ("api_key_env", "OPENAI_API_KEY"), ("model", "/home/me/models/tiny"),
            ("base_url", "https://api.host.org/v1"), ("base_url", "http://10.0.0.1:8000/v1"),
        )),
    ],
)  # fmt: skip
def test_settings_lose_what_is_not_known_to_be_public(name: str, value: object, public: object) -> None:
    assert redacted({name: value}, PUBLIC) == {name: public}


def test_settings_are_searched_to_the_bottom() -> None:
    deep = {
        "extra_body": {"authorization": {"value": "abc", "model": "abc"}, "top_k": [1, 2], "stop": ["a"]}, "n": None,
        "model_name": {"headers": [{"token": "abc"}]},
    }  # fmt: skip
    assert redacted(deep, PUBLIC) == {
        "extra_body": {"authorization": {"value": LEFT_OUT, "model": LEFT_OUT}, "top_k": [1, 2], "stop": ["a"]},
        "n": None, "model_name": {"headers": [{"token": LEFT_OUT}]},
    }  # fmt: skip
    assert redacted({"mine": 1, "extra_body": {"mine": "b"}}, PUBLIC | {"mine"}) == {
        "mine": 1,
        "extra_body": {"mine": "b"},
    }


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ("/home/me/secret project/template.jinja", "template.jinja"), ("~/template.jinja", "template.jinja"),
        ("C:\\Users\\me\\template.jinja", "template.jinja"), ("file:///home/me/template.jinja", "template.jinja"),
        ("[Errno 2] No such file: '/home/me/clips/a.wav'", "[Errno 2] No such file: 'a.wav'"),
        ("404 of https://me:pw@host/v1/chat?key=abc, gone", "404 of https://host/v1/chat, gone"),
        ("\x007\0 of http://u:pw@h/v1", "7 of http://h/v1"), ("token=S3\0cr3tS3cr3t", f"token={LEFT_OUT}"),
        *((text, text) for text in (
            "he/she, 3/4 and a // b", "tokens=128", "the key is lost", "api_key: None", "unknown argument: token_limit",
            "This model's maximum context length is 4096 tokens, max_tokens: 512 is too large",
            "HTTP 429: rate limit of 60 requests per minute",
        )),
    ],
)  # fmt: skip
def test_published_text_has_no_places_and_no_credentials(text: str, public: str) -> None:
    assert redacted_text(text) == public


@pytest.mark.parametrize(
    "text",
    [
        "401 Authorization: Bearer S3cr3tS3cr3t", "bad header 'Basic bWU6UzNjcjN0UzNjcjN0'",
        '{"api_key": "S3cr3tS3cr3t"}',
        "wrong key sk-S3cr3tS3cr3t given", "hf_S3cr3tS3cr3t", "ghp_S3cr3tS3cr3t", "password=S3cr3tS3cr3t&x=1",
        "{'X-Auth': 'S3cr3tS3cr3t'}", "client_secret = S3cr3tS3cr3t;", "url http://u:S3cr3tS3cr3t@h/ x",
        "http://h/?sig=S3cr3tS3cr3t", "AKIAS3CR3TS3CR3T", "session_id: S3cr3tS3cr3t", "Cookie: S3cr3tS3cr3t",
    ],
)  # fmt: skip
def test_text_loses_what_looks_like_a_credential(text: str) -> None:
    assert "s3cr3t" not in without_credentials(text).lower() and "UzNj" not in without_credentials(text)


def test_later_texts_lose_the_secrets_of_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "env/S3cret+1")
    remember_secrets(
        {"extra_body": {"tenant": "arg S3cret", "door": 47114711}, "base_url": "https://u:url%20S3cret@h/v1"}, PUBLIC
    )
    for said in ("env/S3cret+1", "env%2FS3cret%2B1", "ZW52L1MzY3JldCsx", "arg S3cret", "47114711", "url S3cret"):
        assert cleaned(f"I got <{said}>.") == f"I got <{LEFT_OUT}>."


def test_a_secret_of_four_characters_is_left_out_and_a_shorter_one_may_be_a_word() -> None:
    remember_secrets({"extra_body": {"pin": "9#x7", "mode": "9#y"}, "key": "none"}, PUBLIC)
    assert cleaned("9#x7 of 9#y, none") == f"{LEFT_OUT} of 9#y, none"


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
