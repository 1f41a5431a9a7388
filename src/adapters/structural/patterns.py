"""The metavariables in patterns and replacements, as text: which there are, and what can't be meant.

`$NAME` stands for one node, `$$$NAME` for any number of them; names are upper case, digits and `_`. `$_` and names that
begin with `_` match without being remembered. Everything else that has a `$` is the language's own.
Source: ast-grep, pattern syntax.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

METAVARIABLE = re.compile(r"\$\$\$(?P<many>[A-Z_][A-Z0-9_]*)?|\$(?P<one>[A-Z_][A-Z0-9_]*)")
"""In a replacement one may be followed by anything: `$NAMEs` is the node and an s. In a pattern it is a whole word."""
_WHOLE_WORD = re.compile(r"(?:\$\$\$(?P<many>[A-Z_][A-Z0-9_]*)|\$(?P<one>[A-Z_][A-Z0-9_]*))(?!\w)")
_TWO_SIGNS = re.compile(r"(?<!\$)\$\$(?P<name>[A-Z_][A-Z0-9_]*)")
_NAMELESS = re.compile(r"\$\$\$(?![A-Z_])")


@dataclass(frozen=True)
class Names:
    """The metavariables of a pattern that are remembered."""

    one: frozenset[str]
    many: frozenset[str]


def names_in(pattern: str) -> Names:
    """Return the metavariables whose nodes a match of `pattern` gives."""
    found = [(match["one"], match["many"]) for match in _WHOLE_WORD.finditer(pattern)]
    return Names(
        frozenset(one for one, _ in found if one and not one.startswith("_")),
        frozenset(many for _, many in found if many and not many.startswith("_")),
    )


def fault_of_pattern(pattern: str) -> str | None:
    """Return why `pattern` can't be used in any language, None if nothing is wrong with its text."""
    if not pattern.strip():
        return "it is empty"
    return _fault_of_signs(pattern)


def fault_of_replacement(replacement: str) -> str | None:
    """Return why `replacement` can't be used, None if nothing is wrong with it."""
    if _NAMELESS.search(replacement):
        return "$$$ without a name stands for nothing here: name it in both, like $$$ARGS"
    return _fault_of_signs(replacement)


def _fault_of_signs(text: str) -> str | None:
    if "\0" in text:
        return "it holds a NUL"
    found = _TWO_SIGNS.search(text)
    if found is not None:
        name = found["name"]
        return f"$${name} is no metavariable: $$${name} stands for any number of nodes, ${name} for one"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "it holds a lone surrogate"
    return None


def unbound_names(pattern: str, replacement: str) -> list[str]:
    """Return the metavariables of `replacement`, with their signs, that `pattern` doesn't give."""
    names = names_in(pattern)
    found = dict.fromkeys(
        match[0] for match in METAVARIABLE.finditer(replacement)
        if (match["one"] or match["many"]) not in names.one | names.many
    )
    return list(found)
