"""The POSIX classes of one ASCII character, as globs and ignore rules write them in `[[:alpha:]]`."""

import string
from types import MappingProxyType

_VISIBLE = frozenset(range(0x21, 0x7F))
_ALNUM = frozenset(map(ord, string.ascii_letters + string.digits))

POSIX_CLASSES = MappingProxyType({
    "alnum": _ALNUM,
    "alpha": frozenset(map(ord, string.ascii_letters)),
    "blank": frozenset(map(ord, " \t")),
    "cntrl": frozenset(range(0x20)) | {0x7F},
    "digit": frozenset(map(ord, string.digits)),
    "graph": _VISIBLE,
    "lower": frozenset(map(ord, string.ascii_lowercase)),
    "print": _VISIBLE | {0x20},
    "punct": _VISIBLE - _ALNUM,
    "space": frozenset(map(ord, " \t\n\r")),
    "upper": frozenset(map(ord, string.ascii_uppercase)),
    "xdigit": frozenset(map(ord, string.hexdigits)),
})
"""Class name -> code points. Source: git's wildmatch, POSIX locale."""
