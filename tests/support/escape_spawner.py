"""A spawner that takes no level of the ladder and no Landlock ABI above those it is given.

`escape_spawner.py LEVEL ABI …`, then as main; an ABI of 0 sets no limit.
"""

import sys


def main(arguments: list[str]) -> None:
    sys.path += arguments[4:]
    from adapters.spawner import sandbox
    from adapters.spawner.main import main as spawn

    level, abi = int(arguments[0]), int(arguments[1])
    found = sandbox.limit_to(level)
    if abi:
        found.landlock_abi = min(found.landlock_abi, abi)
    spawn(arguments[2:])


if __name__ == "__main__":
    main(sys.argv[1:])
