"""Adding to an answer what its caller should know beside it. A hint that can't be made is left out.

Which workspace a call is about: the one it names, else that of the process it names.
"""

from codespace_es.aggregates.process import PROCESS, Exited, Running
from codespace_es.aggregates.steering import STEERING
from codespace_es.folding import fold
from codespace_es.ports.log import InstanceClosedError, StoreUnavailableError, UnknownTopicError
from codespace_es.ports.world import World
from codespace_es.projections import hints
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.identifiers import WorkspaceKey, steering_stream


async def with_hints(world: World, command: Command, answer: Answer) -> Answer:
    """Return `answer` with the hint that belongs to it, if there is one.

    The command is done by now, so a log that can't be read costs the hint and never the answer.
    """
    try:
        key = await _workspace_of(world, command)
        if key is None:
            return answer
        steering = (await fold(world.log, STEERING, steering_stream(key))).state
    except (StoreUnavailableError, UnknownTopicError, InstanceClosedError):
        return answer
    hint = hints.coordination(steering, getattr(command, "work_id", None))
    return answer if hint is None else answer.model_copy(update={"coordination": hint})


async def _workspace_of(world: World, command: Command) -> WorkspaceKey | None:
    workspace = world.workspaces.get(getattr(command, "workspace_id", None) or "")
    if workspace is not None:
        return workspace.key
    process_id = getattr(command, "process_id", None)
    if process_id is None:
        return None
    state = (await fold(world.log, PROCESS, process_id)).state
    return state.spawned.request.workspace_key if isinstance(state, Running | Exited) else None
