"""One plain sentence for each class of event, as a person reads the log; a module for each aggregate.

A test demands exactly one for each class of the catalogue.
"""

from types import MappingProxyType

from codespace_es.projections.sentences.approval import APPROVAL_SENTENCES
from codespace_es.projections.sentences.instance import INSTANCE_SENTENCES
from codespace_es.projections.sentences.operation import OPERATION_SENTENCES
from codespace_es.projections.sentences.pending import PENDING_SENTENCES
from codespace_es.projections.sentences.process import PROCESS_SENTENCES
from codespace_es.projections.sentences.steering import STEERING_SENTENCES
from codespace_es.projections.sentences.store import STORE_SENTENCES
from codespace_es.projections.sentences.words import Sentences
from codespace_es.vocabulary.event import Event

SENTENCES: Sentences = MappingProxyType({
    **STORE_SENTENCES,
    **INSTANCE_SENTENCES,
    **OPERATION_SENTENCES,
    **APPROVAL_SENTENCES,
    **PENDING_SENTENCES,
    **PROCESS_SENTENCES,
    **STEERING_SENTENCES,
})
"""One a class of the catalogue, exactly."""


def summarise(event: Event) -> str:
    """Return what `event` says in one plain sentence."""
    return SENTENCES[type(event)](event)
