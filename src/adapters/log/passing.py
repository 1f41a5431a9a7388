"""Whether a log that can't be read may be read again soon: the database is away, or somebody else holds it."""

from adapters.log.sqlite.connecting import is_busy


def is_passing(error: BaseException) -> bool:
    """Tell whether the same may succeed soon, by what has caused `error`; on a connection that is made anew."""
    cause: BaseException | None = error
    while cause is not None:
        if getattr(cause, "is_passing", False) or is_busy(cause):
            return True
        cause = cause.__cause__
    return False
