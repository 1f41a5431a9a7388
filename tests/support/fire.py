"""What clients want of servers that are being shot at, and what they write down: requests, retries, a ledger.

Every request has a key, and every patch puts a line with that key into each of its files, after a line that is always
there. So it can be sent again by anybody at any time, and a patch that was applied twice shows in the files.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILES = tuple(f"file{number}.txt" for number in range(6))
LARGE = "large.txt"
_TOP = "top"
_LARGE_LINES = 20_000

FINAL_STATUSES = {"applied", "checked", "failed_rolled_back"}
"""What a patch may come to where nobody else writes: never unknown, never partial."""

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One tool call that may be repeated."""

    tool: str
    key: str
    arguments: Mapping[str, Any]
    workspace: str
    marked: tuple[str, ...] = ()
    """Files that get the key as a line, if it is applied."""
    undone_key: str | None = None
    """The request that an undo undoes."""

    def call_arguments(self) -> dict[str, Any]:
        """Return the arguments of the call, key included."""
        return {**self.arguments, "operation_key": self.key}


@dataclass(slots=True)
class Ledger:
    """What the clients were told, by key. They know nothing else."""

    requests: dict[str, Request] = field(default_factory=dict)
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    totals: Counter[str] = field(default_factory=Counter)

    def note(self, request: Request, answer: Answer) -> None:
        """Write down an answer that stands for ever; one that stands for the moment only is counted."""
        outcome = str(answer.get("status") or answer["code"])
        self.totals[outcome] += 1
        if "operation_id" not in answer:
            return
        self.totals["replayed"] += bool(answer.get("replayed"))
        self.answers.setdefault(request.key, []).append(
            {name: value for name, value in answer.items() if name != "replayed"}
        )

    def outcome(self, key: str) -> str:
        """Return the first status or code that was answered for `key`."""
        first = self.answers[key][0]
        return str(first.get("status") or first["code"])

    def applied(self) -> list[Request]:
        """Return the requests that were acknowledged as applied."""
        return [request for key, request in self.requests.items()
                if key in self.answers and self.outcome(key) == "applied"]

    def undone(self) -> set[str]:
        """Return the keys of the requests that were undone."""
        return {request.undone_key for request in self.applied() if request.undone_key is not None}


def lay_out(root: Path) -> None:
    """Make the files that patches change."""
    root.mkdir()
    for name in FILES:
        (root / name).write_text(f"{_TOP}\n")
    (root / LARGE).write_text(f"{_TOP}\n" + "filling, so that writing takes a while\n" * _LARGE_LINES)


def marking(files: tuple[str, ...], key: str) -> str:
    """Return the patch that puts `key` into each of `files`."""
    sections = "".join(f"*** Update File: {name}\n@@\n {_TOP}\n+{key}\n" for name in files)
    return f"*** Begin Patch\n{sections}*** End Patch\n"


def count_marks(root: Path) -> Counter[tuple[str, str]]:
    """Return how often each line stands in each file, `(path, line)`."""
    return Counter(
        (str(file.relative_to(root)), line)
        for file in root.rglob("*") if file.is_file()
        for line in file.read_text().splitlines() if line != _TOP
    )


class Workload:
    """Gives one request after the other, some of them again."""

    def __init__(self, chance: random.Random, ledger: Ledger, workspaces: tuple[str, ...]) -> None:
        self._chance = chance
        self._ledger = ledger
        self._workspaces = workspaces
        self._again: list[Request] = []
        self._number = 0

    def put_back(self, request: Request) -> None:
        """Have a request sent again whose answer was lost."""
        self._again.append(request)

    def next(self) -> Request:
        """Return a request: one whose answer was lost, one that was answered long ago, or a new one."""
        chance = self._chance
        if self._again and chance.random() < 0.7:
            return self._again.pop(chance.randrange(len(self._again)))
        if self._ledger.requests and chance.random() < 0.15:
            return chance.choice(list(self._ledger.requests.values()))
        request = self._new()
        self._ledger.requests[request.key] = request
        if chance.random() < 0.2:
            self._again.append(request)
        return request

    def _new(self) -> Request:
        self._number += 1
        chance = self._chance
        key = f"{chance.getrandbits(32):08x}-{self._number}"
        workspace = chance.choice(self._workspaces)
        kind = chance.choices(
            ("mark", "large", "add", "check", "bad", "undo"), (45, 15, 15, 5, 8, 12)
        )[0]
        undoable = [each for each in self._ledger.applied()[-40:] if each.tool == "apply_patch"]
        if kind == "undo" and undoable:
            undone = chance.choice(undoable)
            operation_id = self._ledger.answers[undone.key][0]["operation_id"]
            return Request("operation_revert", key, {"operation_id": operation_id}, undone.workspace,
                           undone_key=undone.key)
        files = tuple(chance.sample(FILES, chance.randint(1, 4)))
        if kind == "large":
            files = (LARGE, *files)
        text = marking(files, key)
        if kind == "add":
            files = (f"made/{key}/new.txt",)
            text = f"*** Begin Patch\n*** Add File: {files[0]}\n+{key}\n*** End Patch\n"
        if kind == "bad":
            text = text.replace("*** End Patch", "*** Update File: file0.txt\n@@\n-not there\n+x\n*** End Patch")
        arguments = {"workspace_id": workspace, "patch": text, "check_only": kind == "check"}
        return Request("apply_patch", key, arguments, workspace, marked=files if kind not in {"check", "bad"} else ())


def broken_promises(ledger: Ledger, roots: Mapping[str, Path]) -> Iterator[str]:
    """Yield each sentence of the ledger that isn't true: of the answers alone, and of the answers and the files."""
    for key, answers in ledger.answers.items():
        if any(answer != answers[0] for answer in answers):
            yield f"{key} was answered differently: {answers}"
        status = answers[0].get("status")
        if status is not None and status not in FINAL_STATUSES:
            yield f"{key} came to {status}: {answers[0]}"
    marks = {workspace: count_marks(root) for workspace, root in roots.items()}
    undone = ledger.undone()
    for key, request in ledger.requests.items():
        is_there = key in ledger.answers and ledger.outcome(key) == "applied" and key not in undone
        for file in request.marked:
            found = marks[request.workspace][file, key]
            if found != int(is_there):
                yield f"{key} stands {found} times in {request.workspace}/{file}, told: {ledger.answers.get(key)}"
