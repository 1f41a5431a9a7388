"""Every malformed message is survived, and whoever can be waiting for an answer gets one."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from adapters.mcp_server.lines import LineSplitter, OversizedLine
from adapters.mcp_server.messages import Unusable, read_message, write_message
from support.stdio_client import SECONDS_MAX, RawClient, raw_client, read_log, scripted_door

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RawClient]:
    async with raw_client(scripted_door(), tmp_path_factory.mktemp("malformed")) as client:
        yield client


def _request(**changes: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}, **changes}
    return json.dumps({key: value for key, value in message.items() if value is not ...}).encode()


_CALL = (
    b'{"jsonrpc":"2.0","id":7,"method":"tools/call",'
    b'"params":{"name":"read","arguments":{"workspace_id":"w","path":%s}}}'
)

ANSWERED = [
    ("words", b"hello there", -32700, None),
    ("half an object", b'{"jsonrpc":"2.0","id":7', -32700, None),
    ("five megabytes of brackets", b"[" * 5_000_000, -32700, None),
    ("deep nesting with an id",
     b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":' + b"[" * 400 + b"]" * 400 + b"}}", -32700, 7),
    ("nesting without end, with an id",
     b'{"jsonrpc":"2.0","id":"k","method":"x","params":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}", -32700, "k"),
    ("an argument of 5000 digits",
     b'{"jsonrpc":"2.0","method":"x","params":{"a":' + b"9" * 5000 + b'},"id":7}', -32700, 7),
    ("not a number", b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":NaN}}', -32700, 7),
    ("a mark of byte order", b"\xef\xbb\xbf" + _request(), -32700, None),
    ("bytes that aren't UTF-8", _CALL % b'"a\xff\xfe"', -32700, 7),
    ("an overlong slash", _CALL % b'"a\xc0\xaf"', -32700, 7),
    ("half a character", _CALL % b'"a\\ud800"', -32700, 7),
    ("the other half", _CALL % b'"a\\udc00b"', -32700, 7),
    ("half a character, text id", b'{"jsonrpc":"2.0","id":"k","method":"x","params":{"a":"\\ud83d"}}', -32700, "k"),
    ("an id that isn't UTF-8", b'{"jsonrpc":"2.0","id":"\xff","method":"x"}', -32700, None),
    ("a number", b"5", -32600, None),
    ("a string", b'"tools/list"', -32600, None),
    ("null", b"null", -32600, None),
    ("an empty object", b"{}", -32600, None),
    ("an empty batch", b"[]", -32600, None),
    ("a batch", b"[" + _request() + b"]", -32600, 7),
    ("a batch of notifications", b'[{"jsonrpc":"2.0","method":"x"}]', -32600, None),
    ("method a number", _request(method=123), -32600, 7),
    ("method missing", _request(method=...), -32600, 7),
    ("method null", _request(method=None), -32600, 7),
    ("params a string", _request(params="x"), -32600, 7),
    ("params an array", _request(params=[1]), -32600, 7),
    ("no version", _request(jsonrpc=...), -32600, 7),
    ("version 1.0", _request(jsonrpc="1.0"), -32600, 7),
    ("id null", _request(id=None), -32600, None),
    ("id true", _request(id=True), -32600, None),
    ("id a fraction", _request(id=1.5), -32600, 1.5),
    ("id an array", _request(id=[1]), -32600, None),
    ("id without end", b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}', -32600, None),
    ("id of 5000 digits", b'{"jsonrpc":"2.0","id":' + b"1" * 5000 + b',"method":"ping"}', -32700, None),
]

IGNORED = [
    b"", b"   ", b"\r",
    b'{"jsonrpc":"2.0","result":{}}',
    b'{"jsonrpc":"2.0","id":99,"result":{}}',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"no"}}',
    b'{"jsonrpc":"2.0","id":99,"error":"no"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":424242}}',
    b'{"jsonrpc":"2.0","method":"notifications/nothing","params":"x"}',
    b'{"jsonrpc":"2.0","method":"notifications/progress"}',
]


async def _is_alive(server: RawClient) -> None:
    assert "result" in await server.ask("ping")


@pytest.mark.parametrize(
    ("line", "code", "identifier"), [row[1:] for row in ANSWERED], ids=[row[0] for row in ANSWERED]
)
async def test_a_malformed_request_is_answered_once_and_survived(
    server: RawClient, line: bytes, code: int, identifier: Any
) -> None:
    with anyio.fail_after(SECONDS_MAX):
        await server.send_bytes(line + b"\n")
        answer = await server.receive()
        assert (answer["error"]["code"], answer["id"]) == (code, identifier)
        assert type(answer["id"]) is type(identifier)
        assert len(answer["error"]["message"]) > 10
        await _is_alive(server)


@pytest.mark.parametrize("line", IGNORED)
async def test_what_must_never_be_answered_is_passed_over(server: RawClient, line: bytes) -> None:
    with anyio.fail_after(SECONDS_MAX):
        await server.send_bytes(line + b"\n")
        await _is_alive(server)


async def test_a_batch_answers_each_of_its_requests(server: RawClient) -> None:
    with anyio.fail_after(SECONDS_MAX):
        await server.send_bytes(b"[" + _request(id=1) + b"," + _request(id="b") + b"]\n")
        assert [(await server.receive())["id"] for _ in range(2)] == [1, "b"]
        await _is_alive(server)


@pytest.mark.parametrize("arguments", ["x", 5, [], True])
async def test_arguments_that_are_no_object_are_an_invalid_argument(server: RawClient, arguments: Any) -> None:
    with anyio.fail_after(SECONDS_MAX):
        answer = await server.ask("tools/call", {"name": "read", "arguments": arguments})
    assert answer["result"]["isError"] is True
    assert answer["result"]["structuredContent"]["code"] == "INVALID_ARGUMENT"
    assert answer["result"]["structuredContent"]["detail"] == {"field": "arguments"}


async def test_missing_arguments_name_what_is_missing(server: RawClient) -> None:
    for params in ({"name": "read"}, {"name": "read", "arguments": None}):
        with anyio.fail_after(SECONDS_MAX):
            answer = await server.ask("tools/call", params)
        assert answer["result"]["structuredContent"]["detail"] == {"field": "workspace_id"}


async def test_an_unknown_tool_and_an_unknown_method_are_protocol_errors(server: RawClient) -> None:
    with anyio.fail_after(SECONDS_MAX):
        tool = await server.ask("tools/call", {"name": "rm", "arguments": {}})
        method = await server.ask("tools/destroy")
    assert tool["error"]["code"] == -32602
    assert "workspace_info" in tool["error"]["message"]
    assert method["error"]["code"] == -32601


async def test_separators_of_lines_that_json_allows_stay_inside_a_string(server: RawClient) -> None:
    with anyio.fail_after(SECONDS_MAX):
        await server.send_bytes(_CALL % '"a\u2028\u0085b"'.encode() + b"\n")
        answer = await server.receive()
    assert answer["result"]["structuredContent"]["path"] == "a\u2028\u0085b"


@pytest.mark.parametrize("piece_bytes", [4096, 3 * 1024 * 1024 + 1000])
async def test_three_megabytes_in_a_line_arrive_whole_or_in_pieces(server: RawClient, piece_bytes: int) -> None:
    line = _CALL % (b'"length:' + b"x" * 3 * 1024 * 1024 + b'"') + b"\n"
    with anyio.fail_after(SECONDS_MAX):
        for start in range(0, len(line), piece_bytes):
            await server.send_bytes(line[start:start + piece_bytes])
        answer = await server.receive()
    assert answer["result"]["structuredContent"]["content"] == str(3 * 1024 * 1024)


@pytest.mark.parametrize("line", [
    b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"%s"}}',
    b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"%s"},"id":7}',
])
async def test_a_line_above_sixteen_megabytes_is_refused_by_its_id(server: RawClient, line: bytes) -> None:
    with anyio.fail_after(SECONDS_MAX):
        await server.send_bytes(line % (b"x" * 17 * 1024 * 1024) + b"\n")
        answer = await server.receive()
        assert (answer["id"], answer["error"]["code"]) == (7, -32600)
        assert "16777216" in answer["error"]["message"]
        await _is_alive(server)


async def test_the_malformed_are_named_in_the_log(tmp_path: Path) -> None:
    async with raw_client(scripted_door(), tmp_path) as client:
        with anyio.fail_after(SECONDS_MAX):
            await client.send_bytes(b"nonsense\n")
            await client.receive()
    assert "A message can't be served" in read_log(tmp_path)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_envelope = st.fixed_dictionaries({}, optional={
    "jsonrpc": st.just("2.0") | _json, "id": _json, "method": st.text() | _json, "params": _json,
    "result": _json, "error": _json,
})


@given(_json | _envelope | st.lists(_envelope, max_size=3))
def test_every_json_value_is_a_message_or_owes_answers_that_are_json(value: Any) -> None:
    read = read_message(json.dumps(value).encode("utf-8", "surrogatepass"))
    if isinstance(read, Unusable):
        for answer in read.answers:
            assert answer.count(b"\n") == 1
            assert json.loads(answer, parse_constant=pytest.fail)["error"]["message"]
    elif isinstance(read, JSONRPCRequest):
        assert read.id == value["id"]
        assert read.params == value.get("params")
    elif isinstance(read, JSONRPCNotification):
        assert "id" not in value


def test_an_answer_that_cannot_be_encoded_becomes_an_error_with_its_id() -> None:
    written = write_message(JSONRPCResponse(jsonrpc="2.0", id="k", result={"name": "a\udc80"}))
    assert isinstance(written, Unusable)
    assert [json.loads(answer) for answer in written.answers] == [
        {"jsonrpc": "2.0", "id": "k", "error": {"code": -32603, "message": "The answer can't be written as JSON."}}
    ]
    silent = write_message(JSONRPCNotification(jsonrpc="2.0", method="m", params={"name": "a\udc80"}))
    assert isinstance(silent, Unusable)
    assert silent.answers == ()


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(line: bytes) -> None:
    read_message(line)


@given(_envelope.filter(lambda value: "method" in value))
def test_a_request_with_an_id_that_can_be_echoed_is_always_answered(value: dict[str, Any]) -> None:
    identifier = value.get("id")
    if isinstance(identifier, bool) or not isinstance(identifier, (int, str)):
        return
    read = read_message(json.dumps(value).encode())
    if isinstance(read, Unusable):
        assert [json.loads(answer)["id"] for answer in read.answers] == [identifier]
    else:
        assert isinstance(read, JSONRPCRequest)


@given(st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=6), st.data())
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    splitter = LineSplitter(bytes_max=20)
    found: list[bytes | OversizedLine] = []
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        found += splitter.feed(whole[start:end])
    expected = [line for line in lines if line.strip() or len(line) > 20]
    assert len(found) == len(expected)
    for line, wanted in zip(found, expected, strict=True):
        if isinstance(line, OversizedLine):
            assert len(wanted) > 20
            assert (line.head, line.tail, line.size_bytes) == (wanted, wanted, len(wanted))
        else:
            assert line == wanted
    assert splitter.finish() == []
