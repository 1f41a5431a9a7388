"""How hard the searching tests search: `CODESPACEEFFORT=10` has them try ten times as many examples."""

import os

EFFORT = int(os.environ.get("CODESPACEEFFORT", "1"))


def examples(number: int) -> int:
    """Return how many examples a test tries that tries `number` by default."""
    return number * EFFORT
