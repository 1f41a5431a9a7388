"""Finding the stream of a work or an intent by its id: there is one stream a workspace, so few are asked.

This server's workspaces first; then those that only the log knows, since any server tells of all works.
"""

from collections.abc import AsyncIterator
from typing import Any

from codespace_es.aggregates.steering import STEERING
from codespace_es.aggregates.steering.rules import SteeringCommand
from codespace_es.aggregates.steering.state import Steering
from codespace_es.folding import Folded, fold_on
from codespace_es.ports.world import World
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.identifiers import IntentId, StreamId, WorkId, steering_stream

Steered = Folded[Steering, SteeringCommand]


async def steering_of_work(world: World, work_id: str) -> Steered:
    """Return the stream that has `work_id`. Raises WORK_NOT_FOUND."""
    async for steered in all_steering(world):
        if WorkId(work_id) in steered.state.works:
            return steered
    raise CodespaceError(ErrorCode.WORK_NOT_FOUND, f"No work {work_id[:100]!r} was opened.")


async def steering_of_intent(world: World, intent_id: str) -> Steered:
    """Return the stream that has `intent_id`. Raises INTENT_NOT_FOUND."""
    async for steered in all_steering(world):
        if IntentId(intent_id) in steered.state.intents:
            return steered
    raise CodespaceError(ErrorCode.INTENT_NOT_FOUND, f"No intent {intent_id[:100]!r} is there.")


async def all_steering(world: World) -> AsyncIterator[Steered]:
    """Yield every workspace's steering, this server's first, in the operator's order."""
    streams: dict[StreamId, Any] = dict.fromkeys(steering_stream(each.key) for each in world.workspaces.values())
    streams |= dict.fromkeys(item.stream_id for item in await world.log.open_items(kind="steering"))
    for stream_id in streams:
        yield await steering_now(world, stream_id)


async def steering_now(world: World, stream_id: StreamId) -> Steered:
    """Return a workspace's steering as the log has it now; what is over costs nothing."""
    return await fold_on(world.log, world.kept, STEERING, stream_id)
