"""A mapping that is never changed: a copy with one more, or one less, shares all but a small part with it.

For states that grow with what they remember: a `dict` copied at each event would make their fold quadratic.
"""

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_BUCKETS = 256


class SharingMap(Mapping[Key, Value], Generic[Key, Value]):
    """Iterates in the order in which keys were first added."""

    __slots__ = ("_buckets", "_length", "_next_number")

    def __init__(self) -> None:
        self._buckets: tuple[dict[Key, tuple[int, Value]], ...] = ({},) * _BUCKETS
        self._length = 0
        self._next_number = 0

    def with_item(self, key: Key, value: Value) -> "SharingMap[Key, Value]":
        """Return a copy in which `key` has `value`; one that was there keeps its place."""
        index = hash(key) % _BUCKETS
        bucket = self._buckets[index]
        known = bucket.get(key)
        number = self._next_number if known is None else known[0]
        return self._copy(index, {**bucket, key: (number, value)}, self._length + (known is None))

    def without(self, key: Key) -> "SharingMap[Key, Value]":
        """Return a copy that doesn't have `key`."""
        index = hash(key) % _BUCKETS
        bucket = self._buckets[index]
        if key not in bucket:
            return self
        return self._copy(index, {each: entry for each, entry in bucket.items() if each != key}, self._length - 1)

    def __getitem__(self, key: Key) -> Value:
        return self._buckets[hash(key) % _BUCKETS][key][1]

    def __iter__(self) -> Iterator[Key]:
        entries = ((number, key) for bucket in self._buckets for key, (number, _) in bucket.items())
        return iter([key for _, key in sorted(entries, key=lambda entry: entry[0])])

    def __len__(self) -> int:
        return self._length

    def _copy(self, index: int, bucket: dict[Key, tuple[int, Value]], length: int) -> "SharingMap[Key, Value]":
        made: SharingMap[Key, Value] = SharingMap.__new__(SharingMap)
        made._buckets = (*self._buckets[:index], bucket, *self._buckets[index + 1 :])
        made._length = length
        made._next_number = self._next_number + 1
        return made
