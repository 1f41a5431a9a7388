"""The operator's side of a server on PostgreSQL, over real HTTP: a walk through all that an operator looks at and does.

What is tested of it on a file is tested on PostgreSQL as well in the long run (`-m soak`).
"""

from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from contract.test_http_event_stream import EVENTS, read
from support.http_client import OPERATOR_TOKEN, TOKEN, http_product, serving
from support.postgres import PostgresServer
from support.stdio_client import SECONDS_MAX

pytestmark = pytest.mark.anyio

PATCH = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch\n"


async def told(operator: httpx2.AsyncClient, method: str, path: str, **body: Any) -> Any:
    answer = await operator.request(method, f"/operator/{path}", json=body or None)
    assert answer.status_code in {200, 201}, answer.text
    return answer.json()


async def test_everything_an_operator_does_works(postgres: PostgresServer, tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    configuration = tmp_path / "project.toml"
    configuration.write_text(
        f'store = "{postgres.new_log().url}"\n[workspaces.demo]\nroot = "{tmp_path}/ws"\napprovals = "operator"\n'
        'profile = "workspace-write"\n')
    command = [*http_product(tmp_path), "--config", str(configuration)]
    with anyio.fail_after(SECONDS_MAX):
        async with (
            serving(command, tmp_path, token=TOKEN, operator_token=OPERATOR_TOKEN) as server,
            server.operator() as operator, operator.stream("GET", f"{EVENTS}?after=0") as live,
            aclosing(read(live)) as events,
        ):
            held = (await server.ask("apply_patch", workspace_id="demo", patch=PATCH))["approval_id"]
            assert [each["approval_id"] for each in await told(operator, "GET", "approvals")] == [held]
            assert "+hello" in (await told(operator, "GET", f"approvals/{held}"))["diff"]
            assert (await told(operator, "POST", f"approvals/{held}/grant"))["state"] == "granted"
            done = await server.ask("operation_resume", approval_id=held)
            operation = done["apply_patch"]["operation_id"]
            assert (tmp_path / "ws" / "new.txt").read_text() == "hello\n"

            work = (await server.ask("work_open", workspace_id="demo", title="Tidy up"))["work_id"]
            intent = (await told(
                operator, "POST", f"works/{work}/intents", body="Do it.", delivery="next_checkpoint"))["intent_id"]
            await told(operator, "POST", f"intents/{intent}/queue", revision=1)
            claimed = await server.ask("steer_claim_next", work_id=work)
            assert claimed["item"]["content"] == "Do it."

            shown = await told(operator, "GET", f"operations/{operation}")
            assert (shown["report"]["status"], "+hello" in shown["files"][0]["diff"]) == ("applied", True)
            undone = await told(operator, "POST", f"operations/{operation}/undo")
            assert undone["reverts"] == operation
            assert not (tmp_path / "ws" / "new.txt").exists()

            page = await told(operator, "GET", "timeline?limit=500")
            entries = page["entries"]
            assert [each["position"] for each in entries] == list(range(1, page["next_after"] + 1))
            assert [await anext(events) for _ in entries] == [(each["position"], each) for each in entries]
            earlier = await told(operator, "GET", "timeline?limit=3&before=6")
            assert earlier["entries"] == entries[2:5]
            before = next(each["position"] for each in entries if each["topic"] == "operation.finished.v1") - 1
            assert (await told(operator, "GET", f"state?position={before}"))["operations"] == {}
            assert (await told(operator, "GET", "state"))["operations"] == {"applied": 2}
            verified = await told(operator, "POST", "verification")
            assert (verified["state"], verified["report"]["is_ok"]) == ("done", True)

            signed_in = await operator.post(
                "/console/login", data={"token": OPERATOR_TOKEN}, headers={"Origin": server.root})
            assert signed_in.status_code == 200
            for path in ("", "/works", "/timeline", "/verification", f"/operations/{operation}", f"/approvals/{held}"):
                assert (await operator.get(f"/console{path}")).status_code == 200, path
