"""How a process of tools has ended."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class HostEnd:
    """How a process of tools has ended."""

    kind: Literal["exited", "killed", "hung", "garbled", "closed"]
    """`killed` is SIGKILL, which the system or a person may have sent too; `closed` was ours."""
    words: str
    """What its file did, as a clause: `it …`."""
