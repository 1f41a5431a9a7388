"""The program of the spawner: `python -I -S main.py SOCKET OPEN_FILES_MAX DIRECTORY…`.

SOCKET is the number of an inherited descriptor, OPEN_FILES_MAX the soft limit that commands get (0: as it is), and the
directories are all that is added to the module path: where this package lies, and where ptyprocess does.
With `--probe` in place of SOCKET it prints as JSON what commands can be confined by, and ends.
"""

import socket
import sys


def main(arguments: list[str]) -> None:
    """Run as `arguments` say."""
    sys.path += [directory for directory in arguments[2:] if directory not in sys.path]
    if arguments[0] == "--probe":
        import json

        from adapters.spawner.sandbox import probe

        sys.stdout.write(json.dumps(probe(json.load(sys.stdin))))
        return
    from adapters.spawner.loop import serve

    serve(socket.socket(fileno=int(arguments[0])), open_files_max=int(arguments[1]) or None)


if __name__ == "__main__":
    main(sys.argv[1:])
