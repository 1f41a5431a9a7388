"""A batch of appends as the columns that `append_batch` takes: an array for each, in the order of its parameters."""

from collections.abc import Sequence
from typing import Any

from adapters.log.submission import Submission


def columns_of(batch: Sequence[Submission]) -> tuple[list[Any], ...]:
    """Return the arrays: appends, events, openings, scrubbed bodies, bodies; numbers in them count from 1."""
    appends: list[tuple[Any, ...]] = []
    events: list[tuple[Any, ...]] = []
    openings: list[tuple[Any, ...]] = []
    scrubbed: list[tuple[Any, ...]] = []
    stored: list[tuple[Any, ...]] = []
    for number, submission in enumerate(batch, start=1):
        for row in submission.rows:
            change = row.change
            events.append((
                row.stream_id, row.version, row.topic, row.state, change is not None and change.closes))
            if change is not None:
                openings += [(len(events), kind, key) for kind, key in change.opens]
        appends.append((
            submission.instance_id, submission.starts_instance, submission.is_gapless, len(events)))
        scrubbed += [(number, stream_id, digest) for stream_id, digest in submission.scrubbed]
        stored += [(number, *body) for body in submission.bodies]
    return (*_columns(appends, 4), *_columns(events, 5), *_columns(openings, 3), *_columns(scrubbed, 3),
            *_columns(stored, 7))


def _columns(rows: list[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]
