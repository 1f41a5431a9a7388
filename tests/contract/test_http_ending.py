"""How a server over HTTP begins and ends: what it says, what it refuses to begin with, and that nothing holds it up."""

import signal
import socket
import sys
from pathlib import Path

import anyio
import pytest

from adapters.http.listening import listen
from adapters.settings.http import HttpSettings
from support.http_client import HttpServer, call_message, http_product, serving
from support.scripted_http_door import COMMAND
from support.stdio_client import SECONDS_MAX, ask, connected, environment, product
from support.warm_servers import PRODUCT, run_program, run_to_end

pytestmark = pytest.mark.anyio

END_SECONDS_MAX = 30
"""Far more than an end takes, far less than a call that waits: whoever waited for one would be found out."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    return made


@pytest.fixture
def command(tmp_path: Path, root: Path) -> list[str]:
    return http_product(tmp_path, f"demo={root}:workspace-write")


async def test_a_signal_ends_it_whatever_is_open_and_the_log_says_so(
    tmp_path: Path, root: Path, command: list[str]
) -> None:
    """Open: a GET stream, a call that waits for output, a connection that says nothing, and half a request."""
    async with serving(command, tmp_path) as server:
        with anyio.fail_after(SECONDS_MAX):
            started = await server.ask("exec_command", workspace_id="demo", command=["sleep", "1000"])
            async with (
                await anyio.connect_tcp("127.0.0.1", server.port),
                await anyio.connect_tcp("127.0.0.1", server.port) as half,
                server.plain() as client,
                client.stream("GET", server.url, headers={"Accept": "text/event-stream"}) as stream,
                anyio.create_task_group() as tasks,
            ):
                assert stream.status_code == 200
                await half.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
                tasks.start_soon(_wait_for_output, server, started["process_id"])
                await _until_it_serves_a_waiting_call(server)
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                    server.kill(number)
                with anyio.fail_after(END_SECONDS_MAX):
                    assert await server.process.wait() == 0
                assert await stream.aread() == b""
    assert "without completing response" not in server.log
    assert "Traceback" not in server.log
    with anyio.fail_after(SECONDS_MAX):
        async with connected(product(tmp_path, f"demo={root}"), tmp_path) as client:
            status = await ask(client, "process_status", process_id=started["process_id"])
    assert status["live"] is False
    told = _log(tmp_path)
    assert "serving http." in told
    assert "The server stopped because it was told to end." in told


async def _wait_for_output(server: HttpServer, process_id: str) -> None:
    async with server.plain() as client:
        await client.post(server.url, json=call_message("read_process", process_id=process_id, wait_ms=30_000))


async def _until_it_serves_a_waiting_call(server: HttpServer) -> None:
    """Ask something small twice: the server has taken what was sent before."""
    for _ in range(2):
        await server.ask("workspace_info")


def _log(scratch: Path) -> str:
    done = run_to_end([PRODUCT, "log", "--data-dir", str(scratch / "data")], env=environment(scratch))
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_a_patch_that_has_begun_is_finished_although_the_server_is_told_to_end(
    tmp_path: Path, root: Path, command: list[str]
) -> None:
    names = [f"{number}.txt" for number in range(150)]
    patch = "*** Begin Patch\n" + "".join(f"*** Add File: {name}\n+text\n" for name in names) + "*** End Patch\n"
    request = {"workspace_id": "demo", "patch": patch, "operation_key": "the-key"}

    async def post(server: HttpServer) -> None:
        async with server.plain() as client:
            await client.post(server.url, json=call_message("apply_patch", **request))

    with anyio.fail_after(SECONDS_MAX):
        async with serving(command, tmp_path) as server, anyio.create_task_group() as tasks:
            tasks.start_soon(post, server)
            while "status" not in await server.ask("operation_status", operation_key="the-key"):
                await anyio.sleep(0.001)
            server.kill(signal.SIGINT)
            assert await server.process.wait() == 0
        async with connected(product(tmp_path, f"demo={root}:workspace-write"), tmp_path) as client:
            told = await ask(client, "operation_status", operation_key="the-key")
    assert told["status"] == "applied"
    assert "reason" not in told["events"][-1]
    assert sorted(each.name for each in root.iterdir()) == sorted(names)


async def test_a_kill_forgets_nothing_that_was_answered(tmp_path: Path, command: list[str]) -> None:
    patch = "*** Begin Patch\n*** Add File: once.txt\n+once\n*** End Patch\n"
    request = {"workspace_id": "demo", "patch": patch, "operation_key": "the-key"}
    with anyio.fail_after(SECONDS_MAX):
        async with serving(command, tmp_path) as server:
            done = await server.ask("apply_patch", **request)
            server.kill(signal.SIGKILL)
            await server.process.wait()
        async with serving(command, tmp_path) as server:
            again = await server.ask("apply_patch", **request)
    assert again == {**done, "replayed": True}


async def test_who_comes_while_the_server_ends_is_told_so_and_who_was_there_is_answered(tmp_path: Path) -> None:
    statuses: dict[str, int] = {}

    async def read(server: HttpServer, path: str) -> None:
        async with server.plain() as client:
            response = await client.post(server.url, json=call_message("read", workspace_id="w", path=path))
        statuses[path] = response.status_code

    with anyio.fail_after(SECONDS_MAX):
        async with serving([sys.executable, *COMMAND], tmp_path) as server, anyio.create_task_group() as tasks:
            tasks.start_soon(read, server, "hold")
            await server.log_has("held")
            server.kill(signal.SIGTERM)
            await server.log_has("closing")
            await read(server, "late")
            (tmp_path / "let-go").touch()
            assert await server.process.wait() == 0
    assert statuses == {"late": 503, "hold": 200}


async def test_a_log_that_was_taken_away_is_told_to_the_caller_and_ends_the_server(
    tmp_path: Path, root: Path, command: list[str]
) -> None:
    patch = "*** Begin Patch\n*** Add File: never.txt\n+never\n*** End Patch\n"
    with anyio.fail_after(SECONDS_MAX):
        async with serving(command, tmp_path) as server:
            for file in (tmp_path / "data").glob("codespace.db*"):
                file.unlink()
            told = await server.ask("apply_patch", workspace_id="demo", patch=patch)
            assert await server.process.wait() == 2
    assert told["code"] == "STORE_UNAVAILABLE"
    assert "Traceback" not in server.log
    assert not (root / "never.txt").exists()


async def test_a_port_in_use_is_said_in_one_line_and_nothing_has_begun(tmp_path: Path, root: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        command = http_product(tmp_path, f"demo={root}", address=address)
        done = await run_program(command, env=environment(tmp_path))
    assert done.returncode == 2
    assert done.stderr == f"codespace-es: The server can't listen on {address}: Address already in use.\n"
    assert not (tmp_path / "data").exists()


def test_answers_are_sent_without_delay() -> None:
    """The event loop sees to it on sockets that name their protocol; else an answer waits 40 ms for its client."""
    with listen(HttpSettings(port=0)) as listener:
        assert listener.socket.proto == socket.IPPROTO_TCP
        assert listener.url == f"http://127.0.0.1:{listener.port}"


async def test_beyond_this_machine_it_listens_with_a_token_alone(tmp_path: Path, root: Path) -> None:
    command = http_product(tmp_path, f"demo={root}", address="0.0.0.0:0")
    done = await run_program(command, env=environment(tmp_path))
    assert done.returncode == 2
    assert "no token is set: set CODESPACE_HTTP_TOKEN" in done.stderr
    with anyio.fail_after(SECONDS_MAX):
        async with serving(command, tmp_path, token="s3cret-of-the-tests") as server:
            assert server.url.startswith("http://0.0.0.0:")
            local = HttpServer(server.process, f"http://127.0.0.1:{server.port}/mcp", tmp_path, server.token)
            assert (await local.ask("workspace_info"))["server"] == "codespace"
            async with server.plain() as client:
                assert (await client.post(server.url, json=call_message("workspace_info"))).status_code == 421


async def test_names_of_the_file_are_let_in(tmp_path: Path, root: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        '[http]\nport = 0\ntoken = "from-the-file"\nallowed_hosts = ["code.example"]\n'
        'allowed_origins = ["https://code.example"]\n'
        f'[workspaces.demo]\nroot = "{root}"\n', encoding="utf-8",
    )
    command = [*product(tmp_path), "--config", str(config), "--http"]
    proxied = {"Host": "code.example", "Origin": "https://code.example", "Authorization": "Bearer from-the-file"}
    with anyio.fail_after(SECONDS_MAX):
        async with serving(command, tmp_path) as server, server.plain(**proxied) as client:
            answer = await client.post(server.url, json=call_message("workspace_info"))
            assert answer.status_code == 200
            client.headers["Origin"] = "https://other.example"
            assert (await client.post(server.url, json=call_message("workspace_info"))).status_code == 403


async def test_an_unexpected_failure_is_an_incident_and_the_server_lives(tmp_path: Path) -> None:
    with anyio.fail_after(SECONDS_MAX):
        async with serving([sys.executable, *COMMAND], tmp_path) as server:
            failed = await server.ask("read", workspace_id="w", path="surprise")
            assert (failed["code"], "secret" in str(failed)) == ("INTERNAL", False)
            half = await server.ask("read", workspace_id="w", path="half")
            assert half["path"] == r"half\xe9\ud800"  # what isn't text is told, not sent
            big = await server.ask("read", workspace_id="w", path="big:5000000")
            assert len(big["content"]) == 5_000_000
