"""What a statement has found, where all of it is here already."""

from collections.abc import Iterator
from typing import Any


class FoundRows:
    """Rows that are here already. Implements `Rows`."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = iter(rows)

    def fetchone(self) -> Any:
        """Return the next row, None behind the last."""
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        return list(self._rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows
