"""`store`: commands for the file or database that holds the event log."""

from collections.abc import Mapping
from types import MappingProxyType

from adapters.cli.lazy import LazyCommand, LazyGroup

STORE_COMMANDS: Mapping[str, LazyCommand] = MappingProxyType({
    "init": LazyCommand("adapters.cli.store_init:init", "Make the event log in a PostgreSQL, once."),
    "copy": LazyCommand("adapters.cli.store_copy:copy", "Copy the event log to another place, chain and all."),
    "reindex": LazyCommand("adapters.cli.reindex:reindex", "Make the list of what is open anew, from the events."),
})

store = LazyGroup(
    name="store",
    help="Look after the store that holds the event log. No command here changes or removes an event.",
    table=STORE_COMMANDS,
)
