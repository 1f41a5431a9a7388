"""A spawner that takes no level of the ladder above the one it is given: `escape_spawner.py LEVEL …`, then as main."""

import sys


def main(arguments: list[str]) -> None:
    sys.path += arguments[3:]
    from adapters.spawner import sandbox
    from adapters.spawner.main import main as spawn

    sandbox.limit_to(int(arguments[0]))
    spawn(arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
