"""Which texts can be the name of a stream: what a caller, or a hostile log, asks for may be anything."""


def can_be_name(name: object) -> bool:
    """Return whether a stream can be named so: by text, without NUL for PostgreSQL, without lone surrogates for UTF-8.

    For any other name there is nothing, and no database is asked: the question itself would fail, and with it the
    transaction that it was asked in.
    """
    try:
        return isinstance(name, str) and b"\0" not in name.encode()
    except UnicodeEncodeError:
        return False
