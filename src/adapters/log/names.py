"""Which texts can be the name of a stream: what a caller, or a hostile log, asks for may be anything."""


def can_be_name(text: str) -> bool:
    """Return whether a stream can be named so: PostgreSQL's text holds no NUL, and UTF-8 no lone surrogates.

    For any other name there is nothing, and no database is asked: the question itself would fail, and with it the
    transaction that it was asked in.
    """
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False
