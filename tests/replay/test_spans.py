"""Spans for OpenTelemetry: each parses as the protocol's own message, and tells what the log tells, once it is over."""

import base64
import json
from pathlib import Path

import anyio
import pytest
from google.protobuf.json_format import ParseDict
from lived_log import live
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status, TracesData
from tampering import Tamperer

from adapters.log.reader import LogReader
from codespace_es.event_catalogue import CATALOGUE
from replay.spans import otlp_lines


def parsed(line: bytes) -> Span:
    """Return the span of a line; unknown fields are an error. JSON has ids in hex, where protobuf has base64."""

    def with_bytes(value: object) -> object:
        if isinstance(value, dict):
            return {
                key: base64.b64encode(bytes.fromhex(inner)).decode() if key.endswith(("traceId", "panId")) else
                with_bytes(inner) for key, inner in value.items()
            }
        return [with_bytes(each) for each in value] if isinstance(value, list) else value

    data = ParseDict(with_bytes(json.loads(line)), TracesData())
    (resource,) = data.resource_spans
    assert {each.key for each in resource.resource.attributes} >= {"service.name", "service.instance.id"}
    (scope,) = resource.scope_spans
    (span,) = scope.spans
    assert len(span.trace_id) == 16
    assert len(span.span_id) == 8
    assert span.start_time_unix_nano <= span.end_time_unix_nano
    return span


def facts(span: Span) -> dict[str, object]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


def spans_of(path: Path, *, after: int = 0) -> list[Span]:
    with LogReader(path, CATALOGUE) as source:
        return [parsed(line) for line in otlp_lines(source, after=after)]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scratch = tmp_path_factory.mktemp("session")
    (root := scratch / "project").mkdir()
    anyio.run(live, scratch, root)
    return scratch / "data" / "codespace.db"


def test_each_operation_that_has_ended_is_a_span_with_its_outcome(life):
    spans = {str(facts(span)["codespace.operation.id"]): span for span in spans_of(life.path)}
    assert set(spans) == set(life.operations.values()) - {life.operations["open"]}
    told = {name: spans[each].status.code for name, each in life.operations.items() if name != "open"}
    errors = {name for name, code in told.items() if code == Status.STATUS_CODE_ERROR}
    assert errors == {"rejected", "left"}
    (link,) = spans[life.operations["undo"]].links
    assert link.span_id == spans[life.operations["updated"]].span_id
    assert link.trace_id == spans[life.operations["updated"]].trace_id


def test_holds_commands_and_works_have_spans_and_an_operation_stands_in_its_hold(session):
    spans = spans_of(session)
    by_name: dict[str, list[Span]] = {}
    for span in spans:
        by_name.setdefault(span.name, []).append(span)
    assert set(by_name) == {"apply_patch", "exec_command", "hold apply_patch", "work A work"}
    (patch,) = by_name["apply_patch"]
    holds = {facts(span)["codespace.approval.outcome"]: span for span in by_name["hold apply_patch"]}
    assert patch.parent_span_id == holds["consumed"].span_id
    assert patch.trace_id == holds["consumed"].trace_id
    assert {outcome: span.status.code for outcome, span in holds.items()} == {
        "consumed": Status.STATUS_CODE_OK, "denied": Status.STATUS_CODE_ERROR, "expired": Status.STATUS_CODE_ERROR,
    }
    terminal = next(span for span in by_name["exec_command"] if facts(span)["process.command_line"] == "cat")
    assert facts(terminal)["process.exit.code"] == 0
    assert [each.name for each in terminal.events] == ["process.input_sent.v1"]


def test_spans_are_told_again_alike_and_from_any_position_on(session):
    spans = spans_of(session)
    assert [span.SerializeToString() for span in spans_of(session)] == [span.SerializeToString() for span in spans]
    positions = [int(str(facts(span)["codespace.position"])) for span in spans]
    assert positions == sorted(positions)
    for count, position in enumerate(positions, start=1):
        assert len(spans_of(session, after=position)) == len(spans) - count


def test_a_stream_without_its_beginning_has_no_span(life):
    with Tamperer(life.path) as tamperer:
        tamperer.execute("DELETE FROM events WHERE stream_id = ? AND version = 1", life.operations["updated"])
    told = {facts(span)["codespace.operation.id"] for span in spans_of(life.path)}
    assert life.operations["updated"] not in told
    assert life.operations["added"] in told
