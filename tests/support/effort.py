"""How hard the searching tests search: `CODESPACE_EFFORT=10` has them try ten times as many examples."""

import os

EFFORT = int(os.environ.get("CODESPACE_EFFORT", "1"))


def examples(number: int) -> int:
    """Return how many examples a test tries that tries `number` by default."""
    return number * EFFORT
