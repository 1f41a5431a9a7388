"""Real gateways on several hosts that share one PostgreSQL: who may settle what, and what a lost host leaves.

Hosts are network namespaces, with machine ids and locks of their own; one of them is killed, or cut off.
"""

import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters.log.reader import LogReader
from adapters.settings.postgres_address import PostgresAddress
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.vocabulary.identifiers import StreamId
from replay.verify import verify
from support.hosts import Host, HostsMissingError, network
from support.postgres import PostgresServer
from support.stdio_client import RawClient, environment, raw_client
from support.warm_servers import PRODUCT, run_to_end

pytestmark = pytest.mark.anyio

PATCH = "*** Begin Patch\n*** Update File: greeting.txt\n@@\n-hello\n+good day\n*** End Patch\n"

_SECONDS_MAX = 600
"""Not a measure of speed: when a test is given up for lost."""


@dataclass(frozen=True)
class Site:
    """A host with a workspace, and the log that all share."""

    host: Host
    workspace: str
    root: Path
    store: PostgresAddress

    def command(self, *arguments: str) -> list[str]:
        """Return the product's command line, run on this host."""
        return self.host.command(PRODUCT, *arguments, "--config", str(self._configuration()))

    def _configuration(self) -> Path:
        path = self.host.directory / "config.toml"
        path.write_text(
            f'store = "{self.store.url}"\ndata_dir = "{self.host.directory}/data"\n'
            f'[workspaces.{self.workspace}]\nroot = "{self.root}"\nprofile = "workspace-write"\n', encoding="utf-8")
        return path

    @asynccontextmanager
    async def gateway(self, *options: str) -> AsyncIterator[RawClient]:
        """Start a gateway on this host."""
        with anyio.fail_after(_SECONDS_MAX):
            async with raw_client(self.command("serve", *options), self.host.directory) as client:
                yield client

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the product's command line on this host."""
        return run_to_end(
            self.command(*arguments), env=environment(self.host.directory), seconds_max=_SECONDS_MAX)


@pytest.fixture(scope="module")
def shared_server() -> Iterator[PostgresServer]:
    server = PostgresServer(listen="*")
    yield server
    server.stop()


@pytest.fixture
def sites(postgres: PostgresServer, shared_server: PostgresServer, tmp_path: Path) -> Iterator[list[Site]]:
    try:
        with network(tmp_path) as (address, hosts):
            store = shared_server.new_log(host=address)
            made: list[Site] = []
            for host, name in zip(hosts, ("one", "two"), strict=True):
                root = host.directory / "workspace"
                root.mkdir()
                (root / "greeting.txt").write_text("hello\n", encoding="utf-8")
                made.append(Site(host, name, root, store))
            yield made
    except HostsMissingError as error:
        pytest.skip(f"NOT TESTED: several hosts: {error}")


def events_of(site: Site, stream_id: str) -> list[str]:
    with LogReader(PostgresAddress(site.store.url), CATALOGUE) as reader:
        return [each.topic for each in reader.read_stream(StreamId(stream_id))]


def require_whole(site: Site) -> None:
    with LogReader(PostgresAddress(site.store.url), CATALOGUE) as reader:
        assert verify(reader).findings == ()


def machine_elsewhere(site: Site) -> str:
    listed = json.loads(site.run("hosts", "list", "--json").stdout)
    (machine,) = [each["machine_id"] for each in listed if not each["is_this"]]
    return str(machine)


async def exited(client: RawClient, process_id: str) -> dict[str, Any]:
    while (status := await client.call("process_status", process_id=process_id))["state"] != "exited":
        await anyio.sleep(0.05)
    return status


async def test_any_gateway_answers_for_all_and_each_host_settles_its_own(sites: list[Site]) -> None:
    here, there = sites
    async with there.gateway() as other:
        async with here.gateway() as gateway:
            work_id = (await gateway.call("work_open", workspace_id="one", title="together"))["work_id"]
            patched = await gateway.call("apply_patch", workspace_id="one", patch=PATCH, operation_key="k")
            assert patched["status"] == "applied"
            running = await gateway.call("exec_command", workspace_id="one", command=["sleep", "60"])
            process_id = running["process_id"]

            assert (await other.call("operation_status", operation_id=patched["operation_id"]))["status"] == "applied"
            assert (await other.call("operation_status", operation_key="k"))["operation_id"] == patched["operation_id"]
            assert (await other.call("steer_status", work_id=work_id))["state"] == "active"
            status = await other.call("process_status", process_id=process_id)
            assert (status["state"], status["live"]) == ("running", False)
            refusal = await other.call("read_process", process_id=process_id, cursor=0)
            assert refusal["code"] == "PROCESS_NOT_FOUND"
            assert status["owner"] in refusal["message"]

            drafted = there.run("inbox", "write", work_id, "mind the gap", "--queue", "--json",
                                "--delivery", "next_checkpoint")
            assert drafted.returncode == 0, drafted.stderr
            claimed = await gateway.call("steer_claim_next", work_id=work_id)
            assert claimed["item"]["intent_id"] == json.loads(drafted.stdout)["intent_id"]
            assert "greeting.txt" in there.run("show", patched["operation_id"]).stdout
            wanted = {"tool": "exec_command", "arguments": {"workspace_id": "one", "command": ["true"]}}
            asked = await gateway.ask("tools/call", {"name": "approval_create", "arguments": wanted})
            held = asked["result"]["structuredContent"]
            granted = there.run("approvals", "grant", held["approval_id"])
            assert granted.returncode == 0, granted.stderr
            assert (await other.call("approval_status", approval_id=held["approval_id"]))["state"] == "granted"

            gateway.process.kill()
            await gateway.exit_code()
        # The tree ends with its gateway; only its own host may say so.
        async with there.gateway():
            pass
        assert events_of(there, process_id) == ["process.spawned.v1"]
        machine = machine_elsewhere(there)
        assert f"hosts take-over {machine}" in " ".join(there.run("doctor").stdout.split())
        async with here.gateway() as gateway:
            assert (await exited(gateway, process_id))["termination"] == "unknown"
            assert (await exited(other, process_id))["termination"] == "unknown"  # once it is on record
        await other.end_input()
        assert await other.exit_code() == 0
    require_whole(here)


async def test_a_patch_that_died_half_way_is_settled_by_its_own_host_alone(sites: list[Site]) -> None:
    here, there = sites
    async with here.gateway("--die-at", "temp.synced") as gateway:
        await gateway.start_call(1, "apply_patch", workspace_id="one", patch=PATCH, operation_key="k")
        await gateway.exit_code()
    async with there.gateway() as other:
        told = await other.call("operation_status", operation_key="k")
        assert told["status"] == "unknown"
        assert events_of(there, told["operation_id"]) == ["operation.minted.v1"]
        async with here.gateway() as gateway:
            while (settled := await gateway.call("operation_status", operation_key="k"))["status"] == "unknown":
                await anyio.sleep(0.05)
            assert settled["status"] == "failed_rolled_back"
        assert (await other.call("operation_status", operation_key="k"))["status"] == "failed_rolled_back"
    assert (here.root / "greeting.txt").read_text(encoding="utf-8") == "hello\n"
    require_whole(here)


async def test_a_patch_of_a_lost_host_is_taken_over_and_both_hosts_see_the_same_then(sites: list[Site]) -> None:
    """It ends unknown, without findings, since nobody could look; its host, back again, settles nothing of it."""
    here, there = sites
    async with here.gateway("--die-at", "temp.synced") as gateway:
        await gateway.start_call(1, "apply_patch", workspace_id="one", patch=PATCH, operation_key="k")
        await gateway.exit_code()
    async with there.gateway() as other:
        operation_id = (await other.call("operation_status", operation_key="k"))["operation_id"]
        machine = machine_elsewhere(there)
        taken = there.run("hosts", "take-over", machine, "--yes", "--reason", "it burnt", "--json")
        assert taken.returncode == 0, taken.stderr
        assert json.loads(taken.stdout)["operations"] == [operation_id]
        told = await other.call("operation_status", operation_key="k")
    assert (told["status"], told["error"]["code"]) == ("unknown", "FILE_OPERATION_FAILED")
    assert "findings" not in told
    async with here.gateway() as gateway:
        assert await gateway.call("operation_status", operation_key="k") == told
        repeated = await gateway.call("apply_patch", workspace_id="one", patch=PATCH, operation_key="k")
        assert (repeated["status"], repeated["replayed"]) == ("unknown", True)
        assert (here.root / "greeting.txt").read_text(encoding="utf-8") == "hello\n"
        assert (await gateway.call("apply_patch", workspace_id="one", patch=PATCH))["status"] == "applied"
    assert events_of(here, operation_id) == ["operation.minted.v1", "operation.finished.v1"]
    found = [json.loads(site.run("verify", "--json").stdout) for site in sites]
    for each in found:
        assert (each["is_ok"], each["findings"], each["open_items"]) == (True, [], found[0]["open_items"])
        assert each["head_hash"] == found[0]["head_hash"]
    for site in sites:
        assert json.loads(site.run("show", operation_id, "--json").stdout)["report"]["status"] == "unknown"


async def test_a_host_that_is_cut_off_is_taken_over_and_shut_out(sites: list[Site]) -> None:
    here, there = sites
    async with here.gateway() as gateway, there.gateway() as other:
        running = await gateway.call("exec_command", workspace_id="one", command=["sleep", "600"])
        process_id = running["process_id"]
        machine = machine_elsewhere(there)
        here.host.cut()
        assert there.run("hosts", "take-over", machine).returncode == 2  # nobody to ask, and not told --yes
        taken = there.run("hosts", "take-over", machine, "--yes", "--reason", "its line was cut", "--json")
        assert taken.returncode == 0, taken.stderr
        assert json.loads(taken.stdout)["processes"] == [process_id]
        status = await other.call("process_status", process_id=process_id)
        assert (status["state"], status["termination"]) == ("exited", "unknown")
        again = there.run("hosts", "take-over", machine, "--yes")
        assert again.returncode == 1
        assert "Nothing is open" in again.stderr
        here.host.mend()
        # The shut out gateway lives, may not write any more, and ends.
        refused = await gateway.call("apply_patch", workspace_id="one", patch=PATCH)
        assert refused["code"] == "STORE_UNAVAILABLE"
        assert (here.root / "greeting.txt").read_text(encoding="utf-8") == "hello\n"
        await gateway.exit_code()
        async with here.gateway() as fresh:
            assert (await fresh.call("apply_patch", workspace_id="one", patch=PATCH))["status"] == "applied"
    require_whole(here)
