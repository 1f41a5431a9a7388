"""`store init`: the tables of a log in PostgreSQL, made by an explicit step."""

import click

from adapters.cli.options import as_json, settings_of_log
from adapters.cli.output import print_json, print_pairs
from adapters.settings.load import Settings


@click.command()
@as_json
@settings_of_log
def init(settings: Settings, *, is_json: bool) -> int:
    """Make the event log in a PostgreSQL, once.

    The database is the one that `store` or CODESPACE_STORE names; it has to be there, and its user may make tables in
    the first schema of the search path. Where a log is already, nothing is done, so it can be run at each deployment
    and by several hosts at once. A log that is a file needs no such step: the first server makes it.
    """
    is_made = False
    if settings.store is not None:
        from adapters.log.postgres.making import make_log

        is_made = make_log(settings.store)
    if is_json:
        print_json({"store": str(settings.log_place), "is_made": is_made})
        return 0
    told = "made" if is_made else "was there already" if settings.store else "is a file; the first server makes it"
    print_pairs([("store", str(settings.log_place)), ("event log", told)])
    return 0
