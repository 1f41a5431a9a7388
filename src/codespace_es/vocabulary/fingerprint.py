"""Fingerprints: the digest of a request, by which a repeat is told from another request."""

import json
from typing import Any

from codespace_es.vocabulary.event import Digest
from codespace_es.vocabulary.file_change import digest_of


def canonical_json(value: Any) -> bytes:
    """Return `value` as JSON with sorted keys and no blanks: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def fingerprint(**parts: Any) -> Digest:
    """Return the digest of a request's parts. Which parts count is the caller's rule (contract B2.2)."""
    return digest_of(canonical_json(parts))
