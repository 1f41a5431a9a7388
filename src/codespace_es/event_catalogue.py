"""Topic → class, for every event that was ever stored. The only way from a log file to code.

The events are those that the modules named here define, in the order in which they stand there; the tests keep a list
of all topics, so that each addition is a visible change. A stored event is never edited: a new meaning gets a new
topic `.v2`, an upcaster and a stored log of the old one.
"""

from collections.abc import Iterator
from types import ModuleType

from codespace_es.aggregates import approval, claim, instance, operation, process, store, workspace
from codespace_es.aggregates.pending import events as pending
from codespace_es.aggregates.steering import events as steering
from codespace_es.ports.log import Catalogue
from codespace_es.vocabulary.event import Event


def _events_of(module: ModuleType) -> Iterator[type[Event]]:
    """Yield the events that `module` itself defines."""
    for each in vars(module).values():
        if isinstance(each, type) and issubclass(each, Event) and each.__module__ == module.__name__:
            yield each


_MODULES = (store, instance, workspace, claim, operation, approval, process, pending, steering)

CATALOGUE: Catalogue = {event.TOPIC: event for module in _MODULES for event in _events_of(module)}
