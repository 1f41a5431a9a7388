"""`/inbox` and `/operator` as their OpenAPI document has them, asked for all it allows and for what it doesn't.

The document is the one that the server serves. Whatever comes: an answer that the document has, never a traceback,
never a hang; and afterwards the log is whole. Half of the ids are of things that are there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from adapters.http.inbox import INBOX_CALLS
from adapters.http.json_calls import JsonCall
from adapters.http.operator import OPERATOR_CALLS
from adapters.log.reader import LogReader
from codespace_es.event_catalogue import CATALOGUE
from replay.verify import verify
from support.holds import ADD
from support.http_client import OPERATOR_TOKEN, TOKEN, HttpServer, call_message, http_product, serving, structured

SECONDS_MAX = 40
CALLS = [call for call in (*INBOX_CALLS, *OPERATOR_CALLS) if not call.is_stream]


@dataclass(frozen=True)
class Target:
    """A server, its document, and ids of what is there."""

    server: HttpServer
    schema: Any
    ids: dict[str, str]


@contextmanager
def lived_in(scratch: Path) -> Iterator[Target]:
    (scratch / "ws").mkdir()
    (scratch / "ws" / "a.py").write_text("old\n")
    command = http_product(scratch, f"demo={scratch / 'ws'}")
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            serving(command, scratch, token=TOKEN, operator_token=OPERATOR_TOKEN)
        ) as server,
    ):

        def ask(called: str, **arguments: Any) -> dict[str, Any]:
            async def call() -> dict[str, Any]:
                async with server.plain() as client:
                    message = {**call_message(called), "params": {"name": called, "arguments": arguments}}
                    return structured(await client.post(server.url, json=message))

            return portal.call(call)

        patch = ADD.format(path="a.txt", text="a")
        work_id = ask("work_open", workspace_id="demo")["work_id"]
        drafted = requests.post(
            f"{server.root}/inbox/works/{work_id}/intents", json={"body": "x"}, headers=shown("/inbox"), timeout=10
        )
        ids = {
            "work_id": work_id,
            "intent_id": drafted.json()["intent_id"],
            "operation_id": ask("apply_patch", workspace_id="demo", patch=patch)["operation_id"],
            "approval_id": ask(
                "approval_create", tool="apply_patch", arguments={"workspace_id": "demo", "patch": patch}
            )["approval_id"],
            "id": ask(
                "ast_edit", workspace_id="demo", ops=[{"pat": "old", "out": "new"}], paths=["a.py"]
            )["action_id"],
            "process_id": ask("exec_command", workspace_id="demo", command=["sleep", "600"])["process_id"],
        }
        document = requests.get(f"{server.root}/operator/openapi.json", headers=shown("/operator"), timeout=10).json()
        yield Target(server, schemathesis.openapi.from_dict(document), ids)
        log = requests.post(f"{server.root}/operator/verification", headers=shown("/operator"), timeout=30).json()
        assert log["report"]["findings"] == []
        assert "Traceback" not in server.log
    with LogReader(scratch / "data" / "codespace.db", CATALOGUE) as source:
        assert verify(source).findings == ()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with lived_in(tmp_path_factory.mktemp("fuzz")) as made:
        yield made


def shown(path: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN if path.startswith('/inbox') else OPERATOR_TOKEN}"}


def takes_something(call: JsonCall) -> bool:
    """Return whether anything can be wrong with it: an id in a path can be any text."""
    return bool(set(call.command.model_fields) - {*call.in_path, *call.fixed})


WAYS = [(call, GenerationMode.POSITIVE) for call in CALLS]
WAYS += [(call, GenerationMode.NEGATIVE) for call in CALLS if takes_something(call)]


@pytest.mark.parametrize(("call", "mode"), WAYS, ids=lambda each: getattr(each, "path", getattr(each, "name", "")))
def test_every_call_answers_as_the_document_says(target: Target, call: JsonCall, mode: GenerationMode) -> None:
    cases = target.schema[call.path][call.method].as_strategy(generation_mode=mode)

    @given(case=cases, is_there=st.booleans())
    @settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
    def answers(case: Any, is_there: bool) -> None:
        if is_there and call.in_path:
            case.path_parameters = {**case.path_parameters, **{name: target.ids[name] for name in call.in_path}}
        if isinstance(case.query, dict):
            case.query.pop("wait_ms", None)
        response = case.call(base_url=target.server.root, headers=shown(call.path), timeout=SECONDS_MAX)
        assert response.status_code != 500, response.text
        case.validate_response(
            response, checks=[status_code_conformance, content_type_conformance, response_schema_conformance]
        )

    answers()
