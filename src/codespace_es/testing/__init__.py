"""Model tests of holds, to be run on your own policies: needs `pip install 'codespace-es[testing]'`.

`HoldMachine` asks gateways anything in any order, kills them at any moment, and compares what they say, what the log
says and what stands on the disk with a model of a few lines. See docs/model-testing.md.
"""

from codespace_es.testing.gateways import Gateways, Sight
from codespace_es.testing.hold_machine import HoldMachine
from codespace_es.testing.hold_model import HeldThing, HoldModel, Policy, Request

__all__ = ["Gateways", "HeldThing", "HoldMachine", "HoldModel", "Policy", "Request", "Sight"]
