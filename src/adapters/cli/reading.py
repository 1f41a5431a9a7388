"""Opening the log of these settings for a command that only reads."""

from adapters.log.reader import LogReader
from adapters.settings.load import Settings
from adapters.settings.problem import StartupError
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.ports.log import LogMissingError


def open_log(settings: Settings) -> LogReader:
    """Return the log, opened for reading only; a context manager.

    Raises:
        StartupError: there is none yet.
        StoreUnavailableError: what is there can't be read.
    """
    place = settings.log_place
    assert place is not None, "only `serve` knows logs in memory"
    try:
        return LogReader(place, CATALOGUE)
    except LogMissingError as error:
        if settings.store is not None:
            raise StartupError(f"{error}; make one, once: codespace-es store init") from error
        raise StartupError(
            f"There is no event log at {place} yet; name another place with --data-dir, or run: "
            "codespace-es demo"
        ) from error
