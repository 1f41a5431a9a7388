"""Become a process of another host, then the program: `support.on_host NAME MACHINE_ID STATE TARGET COMMAND …`.

The network is the namespace that is called NAME; the file MACHINE_ID stands for this machine's, and the directory STATE
for TARGET. It is what `ip netns exec` and mounts of one's own do, without the start of another program.
"""

import ctypes
import os
import sys

from support.warm_parent import run

_CLONE_NEWNS = 0x20000
_CLONE_NEWNET = 0x40000000
_MS_BIND = 4096
_MS_REC_PRIVATE = 0x4000 | 0x40000


def main(arguments: list[str]) -> None:
    """Move to the host, and run the program as itself."""
    name, machine_id, state, target, *command = arguments
    libc = ctypes.CDLL(None, use_errno=True)

    def require(returned: int) -> None:
        if returned != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    namespace = os.open(f"/run/netns/{name}", os.O_RDONLY)
    require(libc.setns(namespace, _CLONE_NEWNET))
    os.close(namespace)
    require(libc.unshare(_CLONE_NEWNS))
    require(libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC_PRIVATE), None))
    for source, over in ((machine_id, "/etc/machine-id"), (state, target)):
        require(libc.mount(source.encode(), over.encode(), None, ctypes.c_ulong(_MS_BIND), None))
    run(command)


if __name__ == "__main__":
    main(sys.argv[1:])
