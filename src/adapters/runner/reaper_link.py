"""The way to a reaper, which has one command after another."""

import os
from collections.abc import Callable

from anyio.abc import TaskGroup

from adapters.runner.conversation import Conversation
from adapters.runner.line import Line
from adapters.wire import Link, Message
from codespace_es.ports.runner import RunnerLostError


class ReaperLink:
    """A reaper, as long as it lives. `on_free` is called with it whenever a command's last word was said."""

    def __init__(
        self, pid: int, link: Link, conversation: Conversation, tasks: TaskGroup, *,
        on_free: Callable[["ReaperLink"], None],
    ) -> None:
        self.pid = pid
        self._line = Line(link, tasks)
        self.conversation: Conversation | None = conversation
        """Its command's, until the last word was said."""
        self._on_free = on_free
        self.is_condemned = False
        """The spawner was told to end it, or all beneath it, and may come to it late: it has no other command then."""
        conversation.reach(self._tell)

    @property
    def is_idle(self) -> bool:
        """It lives, as far as is known, and has no command."""
        return self.conversation is None and self._line.is_up and not self.is_condemned

    async def run(self) -> None:
        """Receive until the reaper is gone."""
        await self._line.run(self._deliver)

    def take(self, conversation: Conversation, start: Message, lease: int) -> None:
        """Give an idle one a command. Raises OSError, RunnerLostError, WireError: nothing was asked then."""
        self._line.send(start, [lease])
        self.conversation = conversation
        conversation.reach(self._tell)

    def has(self, conversation: Conversation) -> bool:
        """Return whether it has that command."""
        return self.conversation is conversation

    def finish(self, swept: int) -> None:
        """Take in that it has ended; `swept` processes of its command were ended after it."""
        self._line.drain(self._deliver)
        conversation, self.conversation = self.conversation, None
        if conversation is not None:
            conversation.deliver(_last_word(conversation, swept, self._line.fault), ())

    def close(self) -> None:
        """Have it end, with its tree."""
        self._line.fall()

    def _deliver(self, message: Message, descriptors: list[int]) -> None:
        conversation = self.conversation
        if conversation is None or conversation.process_id != message.get("process_id"):
            for descriptor in descriptors:
                os.close(descriptor)
            return
        conversation.deliver(message, descriptors)
        if conversation.is_over:
            self.conversation = None
            self._on_free(self)

    def _tell(self, message: Message) -> None:
        try:
            self._line.send(message)
        except RunnerLostError:
            return  # it is ending: its last word answers this


def _last_word(conversation: Conversation, swept: int, fault: str | None) -> Message:
    if conversation.at_gate is not None:
        return {"kind": "ended", "wait_status": None, "swept": swept}
    reason = f"couldn't be heard: {fault}" if fault else "was killed"
    return {"kind": "not_started", "message": f"The process that should have watched it {reason}.", "errno": None}
