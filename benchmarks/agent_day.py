"""An agent's day, for benchmarks that last: the same thousand calls, in the same order, again and again.

Mostly reads; a tenth are one-line patches under keys; some repeats, commands, holds, previews, works and refusals.
Every answer is checked: one that isn't what it has to be is counted and named.
"""

import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from raw_client import Client
from raw_http_client import HttpClient

Answer = dict[str, Any]
READ_AT_ONCE = 8
PATCHES_A_DAY = 100
FOUND = 50
LIKED, OTHER = ("print", "log"), ("log", "print")


class Day:
    """One server's client, and what it knows that the server has to know too."""

    def __init__(self, client: Client | HttpClient, root: Path) -> None:
        self.client = client
        self.root = root
        self.calls = 0
        self.patches = 0
        """That were applied to `edit.txt` under keys; the last one has left `line {patches}` there."""
        self.held = 0
        self.applied = 0
        self.bad: Counter[str] = Counter()
        self.times_ms: dict[str, list[float]] = defaultdict(list)
        self._words = LIKED
        self._processes: list[str] = []
        self._operations: list[str] = []
        self._chance = random.Random(1)
        self._order = [moment for moment, count in self._moments().items() for _ in range(count)]
        random.Random(2).shuffle(self._order)

    def live(self) -> int:
        """Live one day; return how many calls it had."""
        before = self.calls
        for moment in self._order:
            moment()
        line = (self.root / "edit.txt").read_text().splitlines()[100]
        self._require("file on disk", line == f"line {self.patches}", line)
        return self.calls - before

    def _moments(self) -> dict[Callable[[], None], int]:
        return {
            self._read: 250, self._read_many: 40, self._describe: 140, self._patch: PATCHES_A_DAY, self._ask_key: 40,
            self._ask_operation: 10, self._find: 20, self._search: 10, self._echo: 10, self._ask_process: 10,
            self._list: 5, self._repeat: 5, self._escape: 5, self._hold: 3, self._deny: 2, self._preview: 3,
            self._drop: 2, self._work: 3,
        }

    # What is asked, and what has to be answered

    def _read(self) -> None:
        self._is_whole(self._call("read", "read", workspace_id="demo", path="read.txt"))

    def _read_many(self) -> None:
        started = time.perf_counter()
        asked = {"name": "read", "arguments": {"workspace_id": "demo", "path": "read.txt"}}
        for _ in range(READ_AT_ONCE):
            self.client.send("tools/call", asked)
        for _ in range(READ_AT_ONCE):
            self._is_whole(self.client.receive()["result"].get("structuredContent", {}))
        self.calls += READ_AT_ONCE
        self.times_ms[f"{READ_AT_ONCE} reads at once"].append((time.perf_counter() - started) * 1000)

    def _is_whole(self, answer: Answer) -> None:
        self._require("read", len(answer.get("content", "")) == 4096, answer)

    def _describe(self) -> None:
        answer = self._call("workspace_info", "workspace_info", workspace_id="demo")
        self._require("workspace_info", answer.get("root") == str(self.root), answer)

    def _patch(self) -> None:
        answer = self._call("patch", "apply_patch", **self._numbered(self.patches + 1))
        self._require("patch", (answer.get("status"), answer.get("replayed")) == ("applied", False), answer)
        self.patches += 1
        self.applied += 1
        self._operations = [*self._operations[-99:], str(answer.get("operation_id"))]

    def _repeat(self) -> None:
        if self.patches:
            answer = self._call("patch again", "apply_patch", **self._numbered(self.patches))
            self._require("patch again", (answer.get("status"), answer.get("replayed")) == ("applied", True), answer)

    @staticmethod
    def _numbered(number: int) -> dict[str, str]:
        return {"workspace_id": "demo", "operation_key": f"day-{number}",
                "patch": one_line("edit.txt", number - 1, number)}

    def _ask_key(self) -> None:
        """Ask for any patch there has been since the first."""
        if self.patches:
            key = f"day-{self._chance.randint(1, self.patches)}"
            answer = self._call("operation_status", "operation_status", operation_key=key)
            told = (answer.get("operation_key"), answer.get("status"))
            self._require("operation_status", told == (key, "applied"), answer)

    def _ask_operation(self) -> None:
        if self._operations:
            name = self._operations[0]
            self._require("resource of an operation", name in self._resource(f"codespace://operations/{name}"), name)

    def _find(self) -> None:
        answer = self._call("find", "find", workspace_id="demo", glob="code/*.py")
        self._require("find", len(answer.get("paths", ())) == FOUND, answer)

    def _search(self) -> None:
        answer = self._call("search", "search", workspace_id="demo", pattern="def f7(", glob="code/*.py")
        self._require("search", {each["path"] for each in answer.get("matches", ())} == {"code/m7.py"}, answer)

    def _echo(self) -> None:
        token = f"t{self.calls}"
        started = self._call("exec_command", "exec_command", workspace_id="demo", command=["echo", token],
                             operation_key=f"echo-{token}")
        name, read, whole = started.get("process_id"), {"cursor": 0, "eof": False}, ""
        while name and not read.get("eof", True):
            read = self._call("read_process", "read_process", process_id=name, cursor=read["cursor"], wait_ms=20_000)
            whole += read.get("chunk", "")
        self._require("echo", whole == f"{token}\n", [started, read])
        self._processes = [*self._processes[-9:], str(name)]

    def _ask_process(self) -> None:
        if self._processes:
            answer = self._call("process_status", "process_status", process_id=self._processes[0])
            self._require("process_status", (answer.get("state"), answer.get("exit_code")) == ("exited", 0), answer)

    def _list(self) -> None:
        """Look at all lists; nothing is open between two moments."""
        for address, name in (("codespace://processes", "processes"), ("codespace://approvals", "approvals"),
                              ("pending://actions", "actions")):
            text = self._resource(address)
            self._require(address, text and json.loads(text)[name] == [], text)
        text = self._resource("codespace://timeline")
        self._require("codespace://timeline", text and json.loads(text)["events"], text)

    def _escape(self) -> None:
        answer = self._call("refusal", "read", workspace_id="demo", path="../beyond")
        self._require("refusal", answer.get("code") == "PATH_ESCAPE", answer)

    def _hold(self) -> None:
        name = self._create_hold()
        status = self._call("approval_status", "approval_status", approval_id=name)
        self._require("approval_status", status.get("files") == ["held.txt"], status)
        self._decide(name, "grant", "granted")
        answer = self._call("operation_resume", "operation_resume", approval_id=name)
        self._require("operation_resume", answer.get("apply_patch", {}).get("status") == "applied", answer)
        self.held += 1
        self.applied += 1

    def _deny(self) -> None:
        self._decide(self._create_hold(), "deny", "denied")

    def _create_hold(self) -> str:
        arguments = {"workspace_id": "demo", "patch": one_line("held.txt", self.held, self.held + 1)}
        answer = self._call("approval_create", "approval_create", tool="apply_patch", arguments=arguments)
        self._require("approval_create", answer.get("state") == "pending", answer)
        return str(answer.get("approval_id"))

    def _decide(self, name: str, decision: str, state: str) -> None:
        answer = self._call("approval_resolve", "approval_resolve", approval_id=name, decision=decision)
        self._require("approval_resolve", answer.get("state") == state, answer)

    def _preview(self) -> None:
        self._resolve("apply", "applied")
        self._words = LIKED if self._words == OTHER else OTHER
        self.applied += 1

    def _drop(self) -> None:
        self._resolve("discard", "discarded")

    def _resolve(self, action: str, outcome: str) -> None:
        old, new = self._words
        staged = self._call("ast_edit", "ast_edit", workspace_id="demo", paths=["code/m0.py"],
                            ops=[{"pat": f"{old}($A)", "out": f"{new}($A)"}])
        self._require("ast_edit", staged.get("total_replacements") == 20, staged)
        answer = self._call("resolve", "resolve", action=action, id=str(staged.get("action_id")))
        self._require("resolve", answer.get("outcome") == outcome, answer)

    def _work(self) -> None:
        opened = self._call("work_open", "work_open", workspace_id="demo", title="A day's work")
        name = str(opened.get("work_id"))
        read = self._call("read in a work", "read", workspace_id="demo", path="read.txt", work_id=name)
        self._require("read in a work", read.get("coordination", {}).get("work_id") == name, read)
        status = self._call("steer_status", "steer_status", work_id=name)
        self._require("steer_status", status.get("state") == "active", status)
        ended = self._call("work_finish", "work_finish", work_id=name)
        self._require("work_finish", ended.get("closed"), ended)

    # Asking

    def _call(self, kind: str, tool: str, /, **arguments: Any) -> Answer:
        """Call a tool; return its structured answer, of a refusal too."""
        result = self._ask(kind, "tools/call", {"name": tool, "arguments": arguments})
        answer: Answer = result.get("structuredContent", {})
        return answer

    def _resource(self, address: str) -> str:
        result = self._ask("resource", "resources/read", {"uri": address})
        return "".join(str(each.get("text", "")) for each in result.get("contents", ()))

    def _ask(self, kind: str, method: str, params: dict[str, Any]) -> Answer:
        started = time.perf_counter()
        message = self.client.ask(method, params)
        self.times_ms[kind].append((time.perf_counter() - started) * 1000)
        self.calls += 1
        result: Answer = message.get("result", {})
        return result

    def _require(self, kind: str, is_good: object, seen: object) -> None:
        if not is_good:
            self.bad[kind] += 1
            if self.bad[kind] <= 3:
                print(f"bad {kind}, call {self.calls:,}: {str(seen)[:500]}", flush=True)

    def take_times(self) -> Iterator[tuple[str, list[float]]]:
        """Yield, and forget, how long each kind of call took since the last time, most frequent first."""
        taken, self.times_ms = self.times_ms, defaultdict(list)
        yield from sorted(taken.items(), key=lambda each: -len(each[1]))


def one_line(path: str, old: int, new: int) -> str:
    return f"*** Begin Patch\n*** Update File: {path}\n@@\n-line {old}\n+line {new}\n*** End Patch\n"


def make_workspace(root: Path) -> None:
    """Make the files that a day reads and changes."""
    (root / "code").mkdir(parents=True)
    (root / "read.txt").write_text(("x" * 63 + "\n") * 64)
    (root / "edit.txt").write_text("".join(f"other {n}\n" for n in range(100)) + "line 0\n" + "end\n" * 99)
    (root / "held.txt").write_text("line 0\n")
    for number in range(FOUND):
        (root / "code" / f"m{number}.py").write_text(f"def f{number}(a):\n    print(a)\n" * 20)
