"""A report tells what was run and how it ended, and what was asked and who decided."""

import json

import anyio
import pytest
from scripted_log import open_server
from test_report import Page, page_of

from codespace_es.aggregates.approval import ApprovalCreated, ApprovalDenied, ApprovalGranted
from codespace_es.aggregates.process import CommandRequest, ProcessExited, ProcessNotStarted, ProcessSpawned
from codespace_es.ports.log import Append, NewBody, NewEvent
from codespace_es.vocabulary.errors import ErrorCode
from codespace_es.vocabulary.event import Fault
from codespace_es.vocabulary.file_change import digest_of
from codespace_es.vocabulary.identifiers import StreamId


async def write(path) -> None:
    async with open_server(path) as server:
        await server.start()

        async def append(stream_id: str, *events, bodies=()) -> None:
            placed = tuple(NewEvent(StreamId(stream_id), number, event) for number, event in enumerate(events, start=1))
            await server.log.append(Append(placed, tuple(bodies)), server.next_caller())

        def request(number: int) -> tuple[CommandRequest, NewBody]:
            argv = NewBody(StreamId(f"proc-{number}"), "request", json.dumps(["make", str(number)]).encode())
            return CommandRequest(
                workspace_key=server.key, workspace_id="demo", argv=argv.body, command_line=f"make {number}", tty=False,
                stdin="null", timeout_ms=0, environment_names=(), sandbox="bubblewrap", network="restricted",
                is_network_enforced=True, fingerprint=digest_of(b"request"),
            ), argv

        def spawned(asked: CommandRequest) -> ProcessSpawned:
            return ProcessSpawned(request=asked, pid=5, started_ticks=6, boot_id="boot", pid_namespace=1)

        for number, (termination, code, signal) in enumerate(
            [("exited", 0, None), ("exited", 2, None), ("signaled", None, 9), ("timeout", None, None)], start=1
        ):
            asked, argv = request(number)
            tail = NewBody(StreamId(f"proc-{number}"), "output", f"<b>built</b> {number}\n".encode())
            ended = ProcessExited(
                termination=termination, exit_code=code, signal=signal, output_bytes=tail.body.size_bytes,
                retained_from=0, output_tail=tail.body, duration_ms=1500, swept=0, is_output_cut=False,
            )
            await append(f"proc-{number}", spawned(asked), ended, bodies=(argv, tail))
        asked, argv = request(5)
        await append("proc-5", spawned(asked), bodies=(argv,))
        asked, argv = request(6)
        fault = Fault(code=ErrorCode.PROCESS_SPAWN_FAILED, message="No such program.")
        await append("proc-6", ProcessNotStarted(request=asked, fault=fault), bodies=(argv,))
        for number, decision in enumerate([ApprovalGranted(), ApprovalDenied(reason="not on a Friday"), None], start=1):
            body = NewBody(StreamId(f"appr-{number}"), "arguments", b"nonce and arguments")
            created = ApprovalCreated(
                workspace_key=server.key, workspace_id="demo", tool="exec_command", origin="policy",
                fingerprint=digest_of(b"%d" % number), arguments=body.body, title=f"Run make {number}",
            )
            await append(f"appr-{number}", created, *([] if decision is None else [decision]), bodies=(body,))


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("commands") / "log.db"
    anyio.run(write, path)
    return page_of(path)


def test_every_command_is_told_with_its_end_and_its_output(text):
    read = Page(text)
    for ending in ("exit code 0, 1.5 s", "exit code 2", "signal 9", "timeout", "hasn't ended", "No such program."):
        assert ending in read.text
    assert text.count('<span class="chip good">done</span>') == 1
    assert read.text.count("no success") == 4
    assert text.count('<span class="chip odd">runs</span>') == 1
    assert "<b>built</b> 1" in read.text
    assert "sandbox bubblewrap, network restricted" in read.text
    assert "commands, 4 without success" in read.text


def test_every_approval_is_told_with_who_decided_and_why(text):
    read = Page(text)
    for told in ("Run make 1", "granted", "denied", "pending", "not on a Friday", "nobody"):
        assert told in read.text
