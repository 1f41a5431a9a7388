"""A command as the log has it now, at the same cost however often somebody has written to it.

What was kept of its stream is brought up to date. Inputs and sizes of the terminal may be many and change nothing of
what is told of it, so they are folded and let go.
"""

from dataclasses import dataclass, replace

from codespace_es.aggregates.process import PROCESS, ProcessCommand, ProcessInputSent, ProcessResized, ProcessState
from codespace_es.folding import Folded, keep_on
from codespace_es.ports.log import Append, VersionConflictError
from codespace_es.ports.world import World
from codespace_es.vocabulary.event import Caller, RecordedEvent
from codespace_es.vocabulary.identifiers import StreamId


@dataclass(frozen=True, slots=True)
class RecordedProcess:
    """A command's state, and the events that tell of it."""

    state: ProcessState = PROCESS.initial_state
    recorded: tuple[RecordedEvent, ...] = ()


async def process_now(world: World, process_id: str) -> RecordedProcess:
    """Return what is on record of a command; nothing for one that was never asked for."""
    return (await _fold_on(world, process_id))[1] if process_id.startswith("proc-") else RecordedProcess()


async def put_on_record(world: World, process_id: str, command: ProcessCommand, caller: Caller) -> None:
    """Decide and append, until nobody was quicker. Raises what the decider and `EventLog.append` raise."""
    while True:
        version, process = await _fold_on(world, process_id)
        events = Folded(PROCESS, StreamId(process_id), version, process.state).decide(command)
        if not events:
            return
        try:
            await world.log.append(Append(events), caller)
        except VersionConflictError:
            continue
        return


async def _fold_on(world: World, process_id: str) -> tuple[int, RecordedProcess]:
    return await keep_on(world.log, world.kept, StreamId(process_id), RecordedProcess(), _with)


def _with(process: RecordedProcess, recorded: RecordedEvent) -> RecordedProcess:
    state = PROCESS.evolve(process.state, recorded.event)
    if isinstance(recorded.event, ProcessInputSent | ProcessResized):
        return replace(process, state=state)
    return RecordedProcess(state, (*process.recorded, recorded))
