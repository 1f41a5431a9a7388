"""Taking turns inside this process: who asks first is served first. Between processes the log decides."""

from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from codespace_es.vocabulary.identifiers import StreamId


class Turns(Protocol):
    """A queue for each name, forgotten when nobody waits in it."""

    def of(self, stream_id: StreamId) -> AbstractAsyncContextManager[Any]:
        """Return what waits for its turn on entering, and lets the next one in on leaving. Cancelling leaves it."""
        ...
