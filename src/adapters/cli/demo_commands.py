"""The second half of the demo's story: commands that go right, fail, print a lot, ask questions, and get killed."""

from typing import Any

from mcp import Client

from adapters.cli.demo_stage import Stage

_GREET = "import greeting; print(greeting.greet('you'))"
_FAIL = "import greeting; greeting.greet(42)"
_LOG = "echo 'error: the first line says why'; seq 100000; exit 1"
_ASK = 'read -p "Your name? " name; [ -t 0 ] && echo "Hello, $name, on $(stty size | tr " " x)."'
_TREE = "trap '' TERM; (sleep 300 &); echo up; sleep 300; sleep 300"
_RUN_KEY = "try-it-out"


async def play_commands(stage: Stage, client: Client) -> None:
    """Tell of commands on `stage`, through the server that `client` speaks to."""
    await _run(stage, client)
    await _fail(stage, client)
    await _print_a_lot(stage, client)
    await _ask(stage, client)
    await _kill(stage, client)


async def _run(stage: Stage, client: Client) -> None:
    stage.events()
    stage.chapter("Run", "The agent tries the code out. The child is forked and waits at a gate until its start is on "
                         "record; only then it may run, so whatever ran is known.")
    arguments: dict[str, Any] = {"command": ["python3", "-c", _GREET], "operation_key": _RUN_KEY}
    started = await stage.call(client, "exec_command", **arguments)
    stage.answer(f"{started['dispatch_status']}, {started['process_id']}")
    stage.listing(await _read_to_the_end(stage, client, started["process_id"]))
    report = await stage.call(client, "process_status", process_id=started["process_id"])
    stage.answer(f"{report['state']}, code {report.get('exit_code')}")
    stage.events()
    stage.check(report.get("exit_code") == 0, "It ran and succeeded: exit code 0, and nothing else, says so.")
    again = await stage.call(client, "exec_command", **arguments)
    stage.answer(f"{again['process_id']}, replayed: {str(again.get('replayed', False)).lower()}")
    stage.check(again["process_id"] == started["process_id"] and not stage.events(),
                "The same key starts nothing a second time.")


async def _fail(stage: Stage, client: Client) -> None:
    stage.chapter("Fail", "A run that fails, and one that can't even begin, are told apart.")
    process_id = await _start(stage, client, "python3", "-c", _FAIL)
    stage.listing((await _read_to_the_end(stage, client, process_id)).splitlines()[-1])
    report = await stage.call(client, "process_status", process_id=process_id)
    stage.answer(f"{report['state']}, code {report.get('exit_code')}")
    refusal = await stage.call(client, "exec_command", command=["pyhton3"])
    stage.answer(f"{refusal['code']}: nothing was started.")
    stage.events()
    stage.check(report.get("exit_code") == 1, "The failure is a result, with its code and its output.")
    stage.check(refusal["code"] == "PROCESS_SPAWN_FAILED", "What never started is proven not to have run.")


async def _print_a_lot(stage: Stage, client: Client) -> None:
    stage.chapter("Print a lot", "A long log: the last 256 KiB are kept to be read on from any cursor, and the first "
                                 "32 KiB beside them, where a build says what went wrong.")
    process_id = await _start(stage, client, "bash", "-c", _LOG)
    tail = await _read_to_the_end(stage, client, process_id)
    report = await stage.call(client, "process_status", process_id=process_id)
    head = report.get("output_head", "")
    stage.listing(f"{head.splitlines()[0] if head else ''}\n…\n{tail.splitlines()[-1]}")
    stage.answer(f"{report['output_total']:,} bytes, kept from {report['output_retained_from']:,} on")
    stage.check(head.startswith("error:") and tail.endswith("100000\n"), "The beginning and the end are both there.")


async def _ask(stage: Stage, client: Client) -> None:
    stage.events()
    stage.chapter("Answer", "A program that asks a question, on a terminal of its own.")
    process_id = await _start(stage, client, "bash", "-c", _ASK, tty=True)
    await _read_until(stage, client, process_id, "name?")
    await stage.call(client, "process_resize", process_id=process_id, rows=30, cols=100)
    await stage.call(client, "write_stdin", process_id=process_id, data="Ada\n")
    text = await _read_to_the_end(stage, client, process_id)
    stage.listing(text.replace("\r", ""))
    stage.events()
    stage.check("Hello, Ada, on 30x100." in text, "It had a terminal, of the size that was asked for last.")


async def _kill(stage: Stage, client: Client) -> None:
    stage.chapter("Kill", "A command that ignores the request to end, and has left something in the background.")
    process_id = await _start(stage, client, "bash", "-c", _TREE)
    await _read_until(stage, client, process_id, "up")
    refusal = await stage.call(client, "exec_command", command=["true"])
    stage.answer(f"{refusal['code']}: {refusal['message']}")
    await stage.call(client, "terminate_process", process_id=process_id, grace_ms=200)
    await _read_to_the_end(stage, client, process_id)
    report = await stage.call(client, "process_status", process_id=process_id)
    stage.answer(f"{report['state']}, {report.get('termination')}, {report.get('descendants_killed')} ended with it")
    stage.events()
    stage.check(refusal["code"] == "WORKSPACE_BUSY", "While it lived, its workspace was its own.")
    stage.check(report.get("termination") == "terminated" and bool(report.get("descendants_killed")),
                "It is gone, and its whole tree with it.")


async def _start(stage: Stage, client: Client, *command: str, **arguments: Any) -> str:
    started = await stage.call(client, "exec_command", command=list(command), **arguments)
    return str(started["process_id"])


async def _read_to_the_end(stage: Stage, client: Client, process_id: str) -> str:
    text, cursor, is_over = "", 0, False
    while not is_over:
        piece = await stage.ask(client, "read_process", process_id=process_id, cursor=cursor, wait_ms=10_000,
                                max_bytes=262_144)
        text, cursor, is_over = text + piece["chunk"], piece["cursor"], piece["eof"]
    return text


async def _read_until(stage: Stage, client: Client, process_id: str, wanted: str) -> None:
    text, cursor, is_over = "", 0, False
    while wanted not in text and not is_over:
        piece = await stage.ask(client, "read_process", process_id=process_id, cursor=cursor, wait_ms=10_000)
        text, cursor, is_over = text + piece["chunk"], piece["cursor"], piece["eof"]
