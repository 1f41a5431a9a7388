"""Programs that try to get out of a sandbox. Runs inside one, on the standard library alone.

`python escape_attempts.py SCENE` with SCENE as JSON; prints JSON: for each attempt "escaped", or "refused: " and why.
Each attempt runs in a process of its own and has a victim of its own (`scene["outside"]/NAME`).
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Scene = dict[str, Any]
ATTEMPTS: dict[str, Callable[[Scene, str], object]] = {}
_libc = ctypes.CDLL(None, use_errno=True)


def attempt(function: Callable[[Scene, str], object]) -> Callable[[Scene, str], object]:
    ATTEMPTS[function.__name__] = function
    return function


def _call(name: str, *arguments: object) -> int:
    result: int = getattr(_libc, name)(*arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _system_call(on_x86: int, on_arm: int, *arguments: object) -> int:
    number = on_x86 if os.uname().machine == "x86_64" else on_arm
    return _call("syscall", ctypes.c_long(number), *arguments)


# Files outside


@attempt
def write_outside(scene: Scene, victim: str) -> None:
    Path(victim).write_text("escaped")


@attempt
def create_outside(scene: Scene, victim: str) -> None:
    Path(victim + ".new").write_text("escaped")


@attempt
def make_a_directory_outside(scene: Scene, victim: str) -> None:
    os.mkdir(victim + ".new")


@attempt
def truncate_outside(scene: Scene, victim: str) -> None:
    os.truncate(victim, 0)


@attempt
def delete_outside(scene: Scene, victim: str) -> None:
    os.unlink(victim)


@attempt
def rename_out(scene: Scene, victim: str) -> None:
    Path("rename_out").write_text("escaped")
    os.rename("rename_out", victim)


@attempt
def rename_in(scene: Scene, victim: str) -> None:
    os.rename(victim, "rename_in")


@attempt
def link_in_and_write(scene: Scene, victim: str) -> None:
    os.link(victim, "link_in")
    Path("link_in").write_text("escaped")


@attempt
def link_out(scene: Scene, victim: str) -> None:
    Path("link_out").write_text("escaped")
    os.link("link_out", victim + ".new")


@attempt
def write_through_a_symbolic_link(scene: Scene, victim: str) -> None:
    os.symlink(victim, "symbolic")
    Path("symbolic").write_text("escaped")


@attempt
def write_through_a_linked_directory(scene: Scene, victim: str) -> None:
    os.symlink(os.path.dirname(victim), "linked")
    Path("linked", os.path.basename(victim)).write_text("escaped")


@attempt
def write_through_the_root_of_a_stranger(scene: Scene, victim: str) -> None:
    Path(f"/proc/{scene['stranger']}/root{victim}").write_text("escaped")


@attempt
def write_through_the_root_of_process_1(scene: Scene, victim: str) -> None:
    Path(f"/proc/1/root{victim}").write_text("escaped")


@attempt
def write_through_a_descriptor_opened_for_reading(scene: Scene, victim: str) -> None:
    descriptor = os.open(victim, os.O_RDONLY)
    Path(f"/proc/self/fd/{descriptor}").write_text("escaped")


@attempt
def change_the_mode_outside(scene: Scene, victim: str) -> None:
    os.chmod(victim, 0o777)


@attempt
def change_the_times_outside(scene: Scene, victim: str) -> None:
    os.utime(victim, (1, 1))


@attempt
def set_an_attribute_outside(scene: Scene, victim: str) -> None:
    os.setxattr(victim, "user.escaped", b"1")


@attempt
def write_a_setting_of_the_kernel(scene: Scene, victim: str) -> None:
    """Open each for writing, and write nothing: the machine is ours too. `pressure` takes requests, not settings."""
    for top in ("/proc", "/sys"):
        for directory, folders, files in os.walk(top):
            if directory == "/proc":
                kept = ("self", "thread-self", "pressure")
                folders[:] = [name for name in folders if not name.isdecimal() and name not in kept]
            for name in files:
                with contextlib.suppress(OSError):
                    os.close(os.open(os.path.join(directory, name), os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW))
                    return
    raise PermissionError(errno.EACCES, "there is none that can be written")


@attempt
def make_a_device(scene: Scene, victim: str) -> None:
    os.mknod("device", 0o600 | 0o060000, os.makedev(7, 0))
    os.open("device", os.O_RDONLY)


@attempt
def write_shared_memory_of_others(scene: Scene, victim: str) -> None:
    with open(scene["shared_memory"], "r+b") as file:
        file.write(b"escaped")


@attempt
def write_protected(scene: Scene, victim: str) -> None:
    Path(".git/hooks/post-checkout").write_text("escaped")


@attempt
def replace_protected(scene: Scene, victim: str) -> None:
    os.rename(".git", "git-before")
    os.makedirs(".git/hooks")


@attempt
def read_hidden(scene: Scene, victim: str) -> None:
    assert Path(scene["hidden"], "secret").read_text() == "secret"


@attempt
def list_hidden(scene: Scene, victim: str) -> None:
    if os.listdir(scene["hidden"]) == []:
        raise PermissionError(errno.EACCES, "it looks empty")


@attempt
def write_hidden(scene: Scene, victim: str) -> None:
    Path(scene["hidden"], "secret").write_text("escaped")


@attempt
def read_hidden_through_a_stranger(scene: Scene, victim: str) -> None:
    assert Path(f"/proc/{scene['stranger']}/root{scene['hidden']}/secret").read_text() == "secret"


# Other views of the file system


@attempt
def remount_writable(scene: Scene, victim: str) -> None:
    remount_bind = 32 | 4096
    _call("mount", b"none", b"/", None, ctypes.c_ulong(remount_bind), None)


@attempt
def uncover_hidden(scene: Scene, victim: str) -> None:
    _call("umount2", os.fsencode(scene["hidden"]), 2)


@attempt
def clone_a_mount(scene: Scene, victim: str) -> None:
    _system_call(428, 428, -100, b"/", 1)


@attempt
def nest_a_user_namespace(scene: Scene, victim: str) -> None:
    _call("unshare", 0x10000000)


@attempt
def fork_into_a_user_namespace(scene: Scene, victim: str) -> None:
    pid = _system_call(56, 220, ctypes.c_ulong(0x10000000 | signal.SIGCHLD), None, None, None, None)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


# Other processes, the kernel


@attempt
def trace_a_stranger(scene: Scene, victim: str) -> None:
    _system_call(101, 117, ctypes.c_long(0x4206), ctypes.c_long(scene["stranger"]), None, None)


@attempt
def open_the_memory_of_a_stranger(scene: Scene, victim: str) -> None:
    os.close(os.open(f"/proc/{scene['stranger']}/mem", os.O_RDWR))


@attempt
def read_the_environment_of_a_stranger(scene: Scene, victim: str) -> None:
    assert Path(f"/proc/{scene['stranger']}/environ").read_bytes()


@attempt
def signal_a_stranger(scene: Scene, victim: str) -> None:
    os.kill(scene["stranger"], 0)


@attempt
def see_a_stranger(scene: Scene, victim: str) -> None:
    assert b"sleep" in Path(f"/proc/{scene['stranger']}/cmdline").read_bytes()


@attempt
def set_up_a_ring(scene: Scene, victim: str) -> None:
    _system_call(425, 425, 4, ctypes.create_string_buffer(256))


@attempt
def use_a_keyring(scene: Scene, victim: str) -> None:
    _system_call(250, 219, 0, -3, 0)


@attempt
def type_for_others(scene: Scene, victim: str) -> None:
    descriptor = os.open("/dev/tty", os.O_RDWR)
    fcntl.ioctl(descriptor, 0x5412, b"x")


# Network and sockets


@attempt
def connect_by_tcp(scene: Scene, victim: str) -> None:
    with socket.socket() as connection:
        connection.connect(("127.0.0.1", scene["tcp"]))


@attempt
def send_by_udp(scene: Scene, victim: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.connect(("192.0.2.1", 9))


@attempt
def reach_the_hypervisor(scene: Scene, victim: str) -> None:
    socket.socket(socket.AF_VSOCK).close()


@attempt
def connect_to_an_abstract_socket(scene: Scene, victim: str) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("\0" + scene["abstract"])


@attempt
def connect_to_a_socket_in_tmp(scene: Scene, victim: str) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(scene["socket_in_tmp"])


@attempt
def connect_to_a_socket_elsewhere(scene: Scene, victim: str) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(scene["socket_elsewhere"])


# What has to work


def is_usable() -> bool:
    """Return whether ordinary work is possible: files, modes, temporary files, homes, devices, semaphores."""
    import multiprocessing

    os.makedirs("made/deep", exist_ok=True)
    Path("made/deep/file").write_text("x")
    os.chmod("made/deep/file", 0o755)
    os.utime("made/deep/file")
    os.rename("made/deep/file", "made/file")
    os.symlink("file", "made/link")
    with tempfile.TemporaryFile() as file:
        file.write(b"x")
    Path(os.environ.get("HOME", "."), "kept").write_text("x")
    Path("/dev/null").write_text("x")
    own, other = socket.socketpair()
    own.close()
    other.close()
    with multiprocessing.Lock():
        return len(Path("/dev/urandom").open("rb").read(1)) == 1


def _result(scene: Scene, name: str) -> str:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            ATTEMPTS[name](scene, os.path.join(scene["outside"], name))
            os.write(writing, b"escaped")
        except OSError as error:
            os.write(writing, f"refused: {error.strerror}".encode())
        except BaseException as error:
            os.write(writing, f"broken: {error!r}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        said = file.read().decode()
    status = os.waitpid(pid, 0)[1]
    return said or f"refused: ended by {status}"


def main() -> None:
    scene = json.loads(sys.argv[1])
    results = {name: _result(scene, name) for name in scene["attempts"]}
    print(json.dumps({"results": results, "is_usable": is_usable(), "environment": dict(os.environ)}))


if __name__ == "__main__":
    main()
