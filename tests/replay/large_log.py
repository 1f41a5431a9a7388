"""A log of any length, as real servers could have written it, made as fast as the log's own writer takes it.

Patches under keys: claim, minted, finished, with a request, two images and a result each. Many share an append.
"""


from itertools import islice
from pathlib import Path

from scripted_log import open_server

from codespace_es.aggregates.claim import ClaimTaken
from codespace_es.aggregates.operation import OperationFinished, OperationMinted
from codespace_es.ports.log import Append, NewBody, NewEvent
from codespace_es.vocabulary.file_change import PlannedFile, change_of
from codespace_es.vocabulary.fingerprint import fingerprint
from codespace_es.vocabulary.identifiers import OperationId, StreamId, WorkspaceKey, claim_stream
from codespace_es.vocabulary.patch_result import PatchResult

EVENTS_A_PATCH = 3
_PATCHES_AN_APPEND = 500


async def make_log(path: Path, events: int, life: int = 1) -> None:
    """Write at least `events` events, to what is there: one server's life, the only one of this number."""
    async with open_server(path, number=life) as server:
        await server.start()
        await server.apply({"first.txt": (None, b"")})
        patches = (patch_of(server.key, OperationId(f"op-{server.ids.uuid()}"), f"{life}-{number}")
                   for number in range(events // EVENTS_A_PATCH + 1))
        while some := list(islice(patches, _PATCHES_AN_APPEND)):
            begun = [event for begin, _, _, _ in some for event in begin]
            kept = [body for _, bodies, _, _ in some for body in bodies]
            await server.log.append(Append(tuple(begun), tuple(kept)), server.next_caller())
            ended, results = [end for _, _, end, _ in some], [result for _, _, _, result in some]
            await server.log.append(Append(tuple(ended), tuple(results)), server.next_caller())
        await server.stop()


def patch_of(
    key: WorkspaceKey, operation_id: OperationId, number: str
) -> tuple[tuple[NewEvent, NewEvent], tuple[NewBody, ...], NewEvent, NewBody]:
    """Return how a patch begins, what is stored with that, how it ends, and its answer."""
    stream = StreamId(operation_id)
    request = NewBody(stream, "request", f"*** Begin Patch {number}".encode())
    before, after = (NewBody(stream, "image", f"{side} {number}\n".encode() * 20) for side in ("old", "new"))
    asked = fingerprint(request=operation_id)
    planned = PlannedFile(
        path=f"file-{number}.txt", kind="update", before=before.body.digest, after=after.body.digest,
        before_bytes=before.body.size_bytes, after_bytes=after.body.size_bytes, mode=0o644, before_mode=0o644,
    )
    minted = OperationMinted(
        workspace_key=key, workspace_id="demo", source="apply_patch", check_only=False, fingerprint=asked,
        operation_key=f"key-{number}", request=request.body, plan=(planned,),
    )
    taken = ClaimTaken(kind="operation_key", holder_id=operation_id, fingerprint=asked)
    changes = (change_of(planned),)
    told = PatchResult(status="applied", operation_id=operation_id, files=(planned.path,), changes=changes)
    result = NewBody(stream, "result", told.to_stored())
    begin = NewEvent(claim_stream("operation_key", f"key-{number}"), 1, taken), NewEvent(stream, 1, minted)
    end = NewEvent(stream, 2, OperationFinished(status="applied", result=result.body))
    return begin, (request, before, after), end, result


