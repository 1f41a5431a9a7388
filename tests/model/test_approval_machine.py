"""Any sequence of holds, decisions, resumes, deaths, restarts and stricter policies, on two real gateways.

The machine and its gateways are the ones that users are given.
"""

from hypothesis import settings

from adapters.testing import ScratchGateways
from codespace_es.testing import HoldMachine
from support.effort import examples


class Approvals(HoldMachine):
    """Every kind of policy that has a say in holds."""

    policies = (
        {"approvals": "confirm"},
        {"approvals": "off"},
        {"approvals": "operator", "operator_unsafe": True},
        {"approvals": "confirm", "profile": "read-only"},
        {"approvals": "confirm", "approval_ttl_seconds": 60},
        {"approvals": "confirm", "protected_paths": ["a.txt"]},
    )

    def open_gateways(self) -> ScratchGateways:
        """Open real ones."""
        return ScratchGateways()


TestApprovals = Approvals.TestCase
TestApprovals.settings = settings(max_examples=examples(10), stateful_step_count=15)
