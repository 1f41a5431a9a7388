"""A mapping that is never changed: a copy with one more, or one less, shares all but a small part with it.

For states that grow with what they remember: a `dict` copied at each event would make their fold quadratic.
"""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

# A tree by the bits of the hash: a node is a dict of a few entries, (number, value) by key, or a tuple of nodes.
_BITS = 5
_WIDTH = 1 << _BITS
_ENTRIES_MAX = 32
"""What a dict may have before it is taken apart."""
_DEEPEST = 60
"""Below these bits of the hash nothing is left to take apart by."""


class SharingMap(Mapping[Key, Value], Generic[Key, Value]):
    """Iterates in the order in which keys were first added; a change costs about the logarithm of the length."""

    __slots__ = ("_length", "_next_number", "_root")

    def __init__(self) -> None:
        self._root: Any = {}
        self._length = 0
        self._next_number = 0

    def with_item(self, key: Key, value: Value) -> "SharingMap[Key, Value]":
        """Return a copy in which `key` has `value`; one that was there keeps its place."""
        if not self._length:
            return self._copy({key: (self._next_number, value)}, 1)
        known = self._entry(key)
        number = self._next_number if known is None else known[0]
        return self._copy(_with(self._root, 0, key, (number, value)), self._length + (known is None))

    def without(self, key: Key) -> "SharingMap[Key, Value]":
        """Return a copy that doesn't have `key`."""
        if self._entry(key) is None:
            return self
        return self._copy(_without(self._root, 0, key), self._length - 1)

    def __getitem__(self, key: Key) -> Value:
        entry = self._entry(key)
        if entry is None:
            raise KeyError(key)
        return entry[1]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, Hashable) and self._entry(key) is not None

    def __iter__(self) -> Iterator[Key]:
        return iter([key for _, key in sorted(_entries(self._root), key=lambda entry: entry[0])])

    def __len__(self) -> int:
        return self._length

    def _entry(self, key: Hashable) -> tuple[int, Value] | None:
        node, bits = self._root, hash(key)
        while isinstance(node, tuple):
            node, bits = node[bits % _WIDTH], bits >> _BITS
        entry: tuple[int, Value] | None = node.get(key)
        return entry

    def _copy(self, root: Any, length: int) -> "SharingMap[Key, Value]":
        made: SharingMap[Key, Value] = SharingMap.__new__(SharingMap)
        made._root = root
        made._length = length
        made._next_number = self._next_number + 1
        return made


def _with(node: Any, depth: int, key: Hashable, entry: tuple[int, Any]) -> Any:
    if isinstance(node, tuple):
        index = (hash(key) >> depth) % _WIDTH
        return (*node[:index], _with(node[index], depth + _BITS, key, entry), *node[index + 1 :])
    more = {**node, key: entry}
    if len(more) <= _ENTRIES_MAX or depth >= _DEEPEST:
        return more
    parts: list[dict[Hashable, Any]] = [{} for _ in range(_WIDTH)]
    for each, known in more.items():
        parts[(hash(each) >> depth) % _WIDTH][each] = known
    return tuple(parts)


def _without(node: Any, depth: int, key: Hashable) -> Any:
    if isinstance(node, tuple):
        index = (hash(key) >> depth) % _WIDTH
        return (*node[:index], _without(node[index], depth + _BITS, key), *node[index + 1 :])
    return {each: entry for each, entry in node.items() if each != key}


def _entries(node: Any) -> Iterator[tuple[int, Any]]:
    if isinstance(node, tuple):
        for part in node:
            yield from _entries(part)
    else:
        yield from ((number, key) for key, (number, _) in node.items())
