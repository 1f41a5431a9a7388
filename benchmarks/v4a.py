"""The patch engine beside `agents.apply_diff` of openai-agents: the same work, one process, best of several rounds.

Run: python benchmarks/v4a.py

Two columns are ours: `text` is parse, locate and edit, from text to text, which is what the other does; `plan` is all
that the product does before it writes (images and their hashes, net effect, diff).
"""

import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agents import apply_diff

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from codespace_es.v4a.line_ends import edited_text, text_file
from codespace_es.v4a.matches import place_hunks
from codespace_es.v4a.parser import parse_patch
from codespace_es.v4a.patch import UpdateSection
from codespace_es.v4a.planner import plan_patch
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.file_change import FileImage

ROUNDS = 15
SLOW_ROUNDS = 3


class OneFile:
    """A tree that holds one file in memory."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def normalize(self, path: str) -> str:
        return path

    def read_image(self, path: str, *, bytes_max: int) -> FileImage | None:  # noqa: ARG002
        return FileImage(self._content, 0o644)

    def missing_directories(self, path: str) -> tuple[str, ...]:  # noqa: ARG002
        return ()


@dataclass(frozen=True)
class Work:
    name: str
    text: str
    diff: str
    is_near_miss: bool = False


def line(number: int) -> str:
    return f"    value_{number} = compute({number}, {number % 7})"


def works() -> list[Work]:
    small = [line(number) for number in range(2_000)]
    hunks = [
        f"@@\n {small[at - 1]}\n-{small[at]}\n+    value_{at} = changed()\n {small[at + 1]}\n"
        for at in range(50, 2_000, 100)
    ]
    large = [line(number) for number in range(50_000)]
    end = f"@@\n {large[-3]}\n-{large[-2]}\n+    changed()\n {large[-1]}\n"
    lost = f"@@\n {large[-3].strip()}\n-{large[-2].strip()}\n+    changed()\n {large[-1].strip()}\n"
    unique = [line(number) for number in range(20_000)]

    def near_miss(lines: list[str]) -> str:
        kept = lines[5_000:14_999]
        return "@@\n" + "".join([f" {text}\n" for text in kept]) + "-    not there\n+    x\n"

    return [
        Work("2,000 lines, 20 hunks", "\n".join(small) + "\n", "".join(hunks)),
        Work("50,000 lines, one hunk at the end", "\n".join(large) + "\n", end),
        Work("50,000 lines, indentation lost", "\n".join(large) + "\n", lost),
        Work("near miss, 10,000 of 20,000 lines", "\n".join(unique) + "\n", near_miss(unique), True),
        Work("near miss, all lines alike", "    return None\n" * 4_000, near_miss_alike(), True),
    ]


def near_miss_alike() -> str:
    """Lines that repeat without end and a block whose last line is one of them, changed: the naive search's worst."""
    return "@@\n" + "     return None\n" * 1_999 + "-    return Nine\n+    x\n"


def patch_of(diff: str) -> str:
    return f"*** Begin Patch\n*** Update File: a.py\n{diff}*** End Patch\n"


def ours_text(text: str, patch: str) -> str:
    section = parse_patch(patch).sections[0]
    assert isinstance(section, UpdateSection)
    file = text_file(text)
    placement = place_hunks(section.hunks, file, path="a.py", matching="lenient")
    return edited_text(file, placement.edits, keeps_mark=placement.keeps_mark)


def ours_plan(content: bytes, patch: str) -> bytes:
    plan = plan_patch(parse_patch(patch), OneFile(content), matching="lenient", protected=lambda _path: False)
    return plan.images[plan.files[0].after]


def best_ms(act: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        with contextlib.suppress(CodespaceError, ValueError):
            act()
        times.append((time.perf_counter() - start) * 1_000)
    return min(times)


def main() -> None:
    print(f"{'work':36} {'apply_diff':>12} {'ours text':>12} {'ours plan':>12} {'ratio text':>11} {'ratio plan':>11}")
    for work in works():
        patch, content = patch_of(work.diff), work.text.encode()
        if not work.is_near_miss:
            theirs = apply_diff(work.text, work.diff)
            assert theirs == ours_text(work.text, patch) == ours_plan(content, patch).decode()
        rounds = SLOW_ROUNDS if work.is_near_miss else ROUNDS
        other = best_ms(lambda: apply_diff(work.text, work.diff), rounds)  # noqa: B023
        text = best_ms(lambda: ours_text(work.text, patch), rounds)  # noqa: B023
        plan = best_ms(lambda: ours_plan(content, patch), rounds)  # noqa: B023
        print(
            f"{work.name:36} {other:9.2f} ms {text:9.2f} ms {plan:9.2f} ms {other / text:10.1f}x {other / plan:10.1f}x"
        )


if __name__ == "__main__":
    main()
