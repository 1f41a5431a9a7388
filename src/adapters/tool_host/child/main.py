"""The program in which custom tools run: `python -P main.py SOCKET DIRECTORY`.

SOCKET is the number of an inherited descriptor, DIRECTORY where this product's packages lie. `-P` keeps the working
directory off the module path: no workspace's file is ever imported by its name.
"""

import socket
import sys


def main(arguments: list[str]) -> None:
    """Run as `arguments` say."""
    if arguments[1] not in sys.path:
        sys.path.append(arguments[1])
    from adapters.tool_host.child.process import serve

    serve(socket.socket(fileno=int(arguments[0])))


if __name__ == "__main__":
    main(sys.argv[1:])
