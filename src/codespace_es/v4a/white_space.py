"""What the format trims: Unicode White_Space, neither what `str.strip()` takes nor what `splitlines()` cuts at."""

WHITE_SPACE = (
    "\t\n\v\f\r \u0085\u00a0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""U+001C to U+001F, U+200B and U+FEFF are not among them. Source: Unicode, property White_Space."""


def trim(text: str) -> str:
    """Return `text` without white space at both ends."""
    return text.strip(WHITE_SPACE)


def trim_end(text: str) -> str:
    """Return `text` without white space at its end."""
    return text.rstrip(WHITE_SPACE)
