"""The wire to a process of the server's own: whole messages in order, descriptors with the message they belong to."""

import json
import os
import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import wire
from adapters.wire import Link, LinkClosedError, WireError


@pytest.fixture
def pair() -> Iterator[tuple[Link, Link]]:
    one, other = (Link(end) for end in socket.socketpair())
    yield one, other
    one.close()
    other.close()


def receive(link: Link, count: int, *, sender: Link) -> list[tuple[dict[str, object], list[int]]]:
    messages: list[tuple[dict[str, object], list[int]]] = []
    while len(messages) < count:
        sender.flush()
        messages += link.receive()
    return messages


texts = st.text(st.characters(codec=None), max_size=20)


@given(contents=st.lists(st.one_of(texts, st.integers(0, 300_000).map(lambda n: "x" * n)), max_size=5))
def test_messages_arrive_whole_and_in_order_also_with_lone_surrogates(contents: list[str]) -> None:
    one, other = (Link(end) for end in socket.socketpair())
    sent = [{"kind": "k", "text": content} for content in contents]
    for message in sent:
        one.send(message)
    assert [message for message, _ in receive(other, len(sent), sender=one)] == sent
    one.close()
    other.close()


def test_descriptors_arrive_with_their_message_and_arent_inherited(pair: tuple[Link, Link]) -> None:
    one, other = pair
    files = [os.memfd_create(f"f{index}") for index in range(3)]
    one.send({"kind": "big", "text": "x" * 500_000})
    one.send({"kind": "first"}, files[:1])
    one.send({"kind": "none"})
    one.send({"kind": "second"}, files[1:])
    inodes = [os.fstat(file).st_ino for file in files]
    for file in files:
        os.close(file)
    got = receive(other, 4, sender=one)
    assert [message["kind"] for message, _ in got] == ["big", "first", "none", "second"]
    assert [[os.fstat(number).st_ino for number in numbers] for _, numbers in got] == [
        [], inodes[:1], [], inodes[1:]]
    for _, numbers in got:
        for number in numbers:
            assert not os.get_inheritable(number)
            os.close(number)


def test_a_message_over_the_limit_is_refused_before_anything_is_sent(pair: tuple[Link, Link]) -> None:
    one, other = pair
    with pytest.raises(WireError):
        one.send({"kind": "k", "text": "x" * wire.MESSAGE_BYTES_MAX})
    one.send({"kind": "next"})
    assert [message for message, _ in other.receive()] == [{"kind": "next"}]


@pytest.mark.parametrize("frame", [
    b"\0\0\0\0", b"\1\0\0\1x", b"\0\0\0\1x", b"\0\0\0\2[]", b"\0\0\0\2{}",
    b"\0\0\0\x1d" + json.dumps({"kind": "k", "descriptors": 1}).encode()[:29],
])
def test_what_isnt_a_message_breaks_the_link(frame: bytes) -> None:
    raw, end = socket.socketpair()
    link = Link(end)
    raw.sendall(frame)
    with pytest.raises(WireError):
        link.receive()
    link.close()
    raw.close()


def test_a_closed_other_side_is_noticed_after_what_it_sent(pair: tuple[Link, Link]) -> None:
    one, other = pair
    one.send({"kind": "last"})
    assert not other.is_at_end()
    one.close()
    assert not other.is_at_end()
    assert [message["kind"] for message, _ in other.receive()] == ["last"]
    assert other.is_at_end()
    with pytest.raises(LinkClosedError):
        other.receive()
    with pytest.raises(LinkClosedError):
        other.send({"kind": "k"})


def test_closing_closes_descriptors_that_nobody_took(pair: tuple[Link, Link]) -> None:
    one, other = pair
    read, write = os.pipe()
    raw = {"kind": "k"}
    for _ in range(2000):  # until the socket is full and the last ones wait in the link
        one.send({**raw, "text": "x" * 1000}, [write])
        if one.has_unsent:
            break
    assert one.has_unsent
    os.close(write)
    one.close()
    other.close()
    assert os.read(read, 1) == b"", "a copy of the writing end is still open somewhere"
    os.close(read)


def test_nothing_is_sent_and_nothing_left_where_a_descriptor_cant_be_duplicated(pair: tuple[Link, Link]) -> None:
    one, other = pair
    file = os.memfd_create("f")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="Bad file descriptor"):
        one.send({"kind": "k"}, [file, -1])
    assert len(os.listdir("/proc/self/fd")) == before
    os.close(file)
    one.send({"kind": "next"})
    assert [message["kind"] for message, _ in receive(other, 1, sender=one)] == ["next"]
