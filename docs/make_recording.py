"""Record the demo in a terminal, as an asciicast: `python docs/make_recording.py`, `asciinema play docs/demo.cast`.

What is typed is typed by this script, what is shown is what the programs print to a real terminal, at the pace of a
reader instead of the machine's, in under two minutes. Source: asciicast v2, one JSON array an event after a header.
"""

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

RECORDING = Path(__file__).parent / "demo.cast"
COLUMNS, ROWS = 100, 32
SECONDS_MAX = 118.0
_PAUSE_SECONDS = 0.7
_LINE_SECONDS = 0.5
_KEY_SECONDS = 0.05
_PROMPT = "\x1b[1;32m$\x1b[0m "


class Recording:
    """What appears on a terminal, piece by piece, each at its second."""

    def __init__(self) -> None:
        self.pieces: list[tuple[float, str]] = []
        self._now = 0.0

    def show(self, text: str, *, after_seconds: float) -> None:
        """Add what appears so long after what came before."""
        self._now += after_seconds
        self.pieces.append((self._now, text))

    def read(self, text: str) -> None:
        """Add output, a line at a time."""
        for line in text.splitlines(keepends=True):
            self.show(line, after_seconds=_LINE_SECONDS)

    def type(self, line: str) -> None:
        """Show a prompt, a line as it is typed, and its end."""
        self.show(_PROMPT, after_seconds=_PAUSE_SECONDS)
        for letter in line:
            self.show(letter, after_seconds=_KEY_SECONDS)
        self.show("\r\n", after_seconds=_PAUSE_SECONDS)

    def lines(self) -> Iterator[str]:
        """Yield the file's lines; what would be too long is played faster."""
        speed = min(1.0, SECONDS_MAX / self._now)
        header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "CodeSpace ES in two minutes",
                  "env": {"TERM": "xterm-256color"}}
        yield json.dumps(header)
        for at, text in self.pieces:
            yield json.dumps([round(at * speed, 3), "o", text], ensure_ascii=False)


PROGRAM = Path(sys.executable).with_name("codespace-es")


def run(recording: Recording, argv: list[str], environment: dict[str, str]) -> str:
    """Type a command of ours, run it on a terminal, and return what it printed. Raises SystemExit if it fails."""
    recording.type(" ".join(argv))
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(PROGRAM, argv, environment)  # noqa: S606 - our own program
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    printed = bytearray()
    while True:
        try:
            content = os.read(terminal, 65536)
        except OSError:  # how a terminal says that nobody has it open any more
            break
        printed += content
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    text = printed.decode(errors="replace")
    if status != 0:
        sys.exit(f"{argv} ended with {os.waitstatus_to_exitcode(status)}:\n{text}")
    recording.read(text)
    return text


def main() -> None:
    """Play and record."""
    # Not where this was recorded: what the programs print tells their PATH.
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "TERM": "xterm-256color", "LANG": "C.UTF-8",
                   "HOME": os.environ["HOME"], "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
    recording = Recording()
    told = run(recording, ["codespace-es", "demo", "--keep"], environment)
    match = re.search(r"--data-dir (\S+)/data", re.sub(r"\x1b\[[0-9;]*m", "", told))
    assert match is not None, "the demo says where its log is"
    kept = Path(match[1])
    try:
        recording.type(f"export CODESPACE_DATA_DIR={kept}/data")
        environment["CODESPACE_DATA_DIR"] = f"{kept}/data"
        run(recording, ["codespace-es", "log", "--limit", "12"], environment)
        run(recording, ["codespace-es", "verify"], environment)
        recording.show(_PROMPT, after_seconds=_PAUSE_SECONDS)
    finally:
        shutil.rmtree(kept)
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDING
    output.write_text("".join(f"{line}\n" for line in recording.lines()), encoding="utf-8")


if __name__ == "__main__":
    main()
