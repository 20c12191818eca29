"""Media of the next requests are read and decoded in threads: order, bounds, failures, and that no thread remains."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from made_requests import made_request as request

from equivox.core.media import MediaError
from equivox.core.requests import MediaPart, Request
from equivox.engines.messages import MediaAhead


def clip(name: str, load: Callable[[], bytes] = bytes) -> MediaPart:
    return MediaPart(kind="audio", sha256=name * 64, name=f"{name}.wav", load=load)


def named(part: MediaPart) -> dict[str, Any]:
    return {"name": part.name}


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("equivox-media")]


def rest(ahead: MediaAhead, room: int = 100) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the key and the media of each request, as an engine reads them."""
    ahead.take(room)
    while ahead.first is not None:
        yield ahead.first.key, ahead.media()
        ahead.drop()
        ahead.take(room)


def test_media_are_decoded_on_another_thread_while_the_caller_works() -> None:
    released, decoding = threading.Event(), []

    def content(part: MediaPart) -> dict[str, Any]:
        decoding.append(threading.current_thread())
        assert released.wait(10)
        return named(part)

    with closing(MediaAhead([request(0, clip("a"))], content=content)) as ahead:
        ahead.take(1)
        assert not ahead.ready()
        released.set()
        assert ahead.media() == [{"name": "a.wav"}]
        assert ahead.ready()
    assert decoding[0] is not threading.current_thread()
    assert not threads()


def test_the_order_is_that_of_the_source_and_a_clip_is_decoded_once() -> None:
    decoded: list[str] = []

    def content(part: MediaPart) -> dict[str, Any]:
        decoded.append(part.name)
        return named(part)

    asked = [request(3 * n + t, clip(name)) for n, name in enumerate("abcdefgh") for t in range(3)]
    with closing(MediaAhead(asked, content=content)) as ahead:
        found = list(rest(ahead))
    assert found == [(entry.key, [{"name": entry.media[0].name}]) for entry in asked]
    assert sorted(decoded) == [f"{name}.wav" for name in "abcdefgh"]


def test_no_more_are_taken_than_there_is_room_for_and_than_are_made_ready_at_a_time() -> None:
    given: list[int] = []

    def source() -> Iterator[Request]:
        for number in range(20):
            given.append(number)
            yield request(number, clip(chr(97 + number)))

    with closing(MediaAhead(source(), content=named, most=4)) as ahead:
        ahead.take(0)
        assert given == []
        ahead.take(3)
        assert len(given) == 3
        ahead.take(100)
        assert len(given) == 4
        ahead.drop()
        ahead.take(100)
        assert len(given) == 5


def test_a_damaged_clip_fails_for_its_requests_alone() -> None:
    def content(part: MediaPart) -> dict[str, Any]:
        if part.name == "b.wav":
            raise MediaError("b.wav: empty (0 bytes)")
        return named(part)

    asked = [request(0, clip("a")), request(1, clip("b")), request(2, clip("b")), request(3, clip("c"))]
    with closing(MediaAhead(asked, content=content)) as ahead:
        ahead.take(4)
        for entry in asked:
            assert ahead.first is entry
            if entry.media[0].name == "b.wav":
                with pytest.raises(MediaError, match=r"b\.wav: empty"):
                    ahead.media()
            else:
                assert ahead.media() == [{"name": entry.media[0].name}]
            ahead.drop()
        assert ahead.first is None


def test_requests_that_are_put_back_come_first() -> None:
    with closing(MediaAhead([request(n, clip(chr(97 + n))) for n in range(4)], content=named, most=2)) as ahead:
        lost = [request(8, clip("y")), request(9, clip("z"))]
        ahead.take(2)
        ahead.put_back(lost)
        assert not ahead.ready()
        assert [key for key, _ in rest(ahead)] == ["key8", "key9", "key0", "key1", "key2", "key3"]


def test_text_needs_no_thread() -> None:
    with closing(MediaAhead([request(n) for n in range(8)], content=named)) as ahead:
        ahead.take(8)
        assert ahead.ready()
        assert ahead.media() == []
        assert not threads()


def test_a_clip_that_nobody_waits_for_any_more_is_not_read() -> None:
    """One thread reads the first clip; the others were waiting for it when the answers were no longer wanted."""
    started, released, read = threading.Event(), threading.Event(), []

    def content(part: MediaPart) -> dict[str, Any]:
        read.append(part.name)
        started.set()
        assert released.wait(10)
        return named(part)

    ahead = MediaAhead([request(n, clip(chr(97 + n))) for n in range(8)], content=content, threads=1)
    ahead.take(8)
    assert started.wait(10)
    threading.Timer(0.05, released.set).start()
    ahead.close()
    assert read == ["a.wav"]
    assert not threads()
