"""Telling of a command on record whether it was let go: its server may be another, or dead, or about to do it.

Source: decision 19; contract A5.
"""

from typing import Literal

from anyio import move_on_after, sleep

from codespace_es.admission import lives
from codespace_es.aggregates.process import PROCESS, Exited, Running
from codespace_es.ports.world import World
from codespace_es.vocabulary.identifiers import ProcessId, StreamId

_LETTING_GO_SECONDS_MAX = 1.0
_LETTING_GO_LOOK_SECONDS = 0.002


async def dispatch_of(world: World, process_id: str) -> Literal["confirmed", "unknown"]:
    """Return whether a command on record was let go. Its server or runner may have died just before: nobody can say.

    One of this server that doesn't live yet is let go in this moment, or was lost, which is on record soon.
    """
    with move_on_after(_LETTING_GO_SECONDS_MAX):
        while True:
            recorded = await world.log.read_stream(StreamId(process_id))
            state = PROCESS.fold_recorded(recorded)
            if not isinstance(state, Running):
                return "unknown" if isinstance(state, Exited) and state.exited.termination == "unknown" else "confirmed"
            owner = recorded[0].envelope.instance_id
            if owner != world.instance_id:
                return "confirmed" if await lives(world, owner) else "unknown"
            if world.live.find(ProcessId(process_id)) is not None:
                return "confirmed"
            await sleep(_LETTING_GO_LOOK_SECONDS)
    return "unknown"
