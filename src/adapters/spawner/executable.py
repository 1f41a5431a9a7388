"""What can be known of a command before it is forked, so that "nothing was started" is certain and says why.

`execve` answers with a bare number, and only after the gate. Source: execve(2), ld.so(8); field cases FR-095, FR-097.
"""

from __future__ import annotations

import errno
import os
import resource
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ARGUMENT_BYTES_MAX = 32 * 4096
"""MAX_ARG_STRLEN: one argument or `NAME=value`, with its end mark."""
_ARGUMENTS_BYTES_MIN = 128 * 1024
_ARGUMENTS_BYTES_MAX = 6 * 1024 * 1024
"""ARG_MAX of the kernel lies between these: a quarter of the stack's limit."""
_PATH_DEFAULT = "/usr/local/bin:/usr/bin:/bin"
_SCRIPT_LINE_BYTES = 256
_SCRIPT_DEPTH_MAX = 5


class UnusableError(Exception):
    """This command can't be started. Carries the system's errno."""

    def __init__(self, errno: int, message: str) -> None:
        super().__init__(message)
        self.errno = errno


def usable_program(argv: Sequence[str], environment: Mapping[str, str], root: str) -> str:
    """Return the path to execute, absolute or relative to `root`, which is the working directory.

    Raises:
        UnusableError: no such program or directory, no permission, no program at all, or too long.
    """
    _require_root(root)
    _require_passable(argv, environment)
    path = _find(argv[0], environment.get("PATH", _PATH_DEFAULT), root)
    _require_runnable(path, root, _SCRIPT_DEPTH_MAX, shown=argv[0])
    return path


def _require_root(root: str) -> None:
    try:
        is_directory = stat.S_ISDIR(os.stat(root).st_mode)
    except OSError as error:
        raise UnusableError(error.errno or errno.ENOENT, f"The working directory {root} is missing.") from error
    if os.path.realpath(root) != root:
        raise UnusableError(
            errno.ELOOP, f"The working directory {root} is, or leads through, a symbolic link since the server began.")
    if not is_directory:
        raise UnusableError(errno.ENOTDIR, f"The working directory {root} isn't a directory.")
    if not os.access(root, os.X_OK, effective_ids=True):
        raise UnusableError(errno.EACCES, f"The working directory {root} may not be entered.")


def _require_passable(argv: Sequence[str], environment: Mapping[str, str]) -> None:
    """Check what the kernel limits: end marks inside, and lengths."""
    if not argv or not argv[0]:
        raise UnusableError(errno.ENOENT, "The command names no program.")
    total = 0
    for index, argument in enumerate(argv):
        total += 8 + _size(argument, "Argument", index)
    for name, value in environment.items():
        total += 8 + _size(f"{name}={value}", "The environment variable", name)
    total_max = arguments_bytes_max()
    if total > total_max:
        raise UnusableError(
            errno.E2BIG,
            f"The arguments and the environment have {total} bytes together; the system's limit is {total_max}.",
        )


def _size(text: str, kind: str, name: str | int) -> int:
    """Return how many bytes the kernel copies for it, its end mark included."""
    try:
        size = len(os.fsencode(text)) + 1
    except UnicodeEncodeError:
        raise UnusableError(errno.EINVAL, f"{kind} {name} holds a lone surrogate, which isn't text.") from None
    if "\0" in text:
        raise UnusableError(errno.EINVAL, f"{kind} {name} holds a NUL character, which no argument can.")
    if size > ARGUMENT_BYTES_MAX:
        raise UnusableError(
            errno.E2BIG,
            f"{kind} {name} has {size - 1} bytes; the system's limit for one is {ARGUMENT_BYTES_MAX - 1}. "
            "Write it to a file, or send it to the command's input.",
        )
    return size


def arguments_bytes_max() -> int:
    """Return how much arguments and environment may take together, each with 8 bytes for its pointer."""
    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    quarter = _ARGUMENTS_BYTES_MAX if soft == resource.RLIM_INFINITY else soft // 4
    return max(_ARGUMENTS_BYTES_MIN, min(_ARGUMENTS_BYTES_MAX, quarter)) - 4096


def _find(name: str, search_path: str, root: str) -> str:
    if "/" in name:
        return name
    unusable: str | None = None
    for directory in search_path.split(":"):
        path = os.path.join(directory or ".", name)
        where = os.path.join(root, path)
        if os.path.isfile(where):
            if os.access(where, os.X_OK, effective_ids=True):
                return path
            unusable = unusable or path
    if unusable is not None:
        return unusable
    beside = os.path.join(root, name)
    hint = f" There is ./{name} in the working directory: did you mean that?" if os.path.isfile(beside) else ""
    raise UnusableError(errno.ENOENT, f"The program {name} isn't in PATH ({search_path}).{hint}")


def _require_runnable(path: str, root: str, depth: int, *, shown: str) -> None:
    where = os.path.join(root, path)
    try:
        mode = os.stat(where).st_mode
    except OSError as error:
        reason = "doesn't exist" if error.errno == errno.ENOENT else f"can't be used: {error.strerror}"
        raise UnusableError(error.errno or errno.ENOENT, f"The program {shown} {reason}.") from error
    if stat.S_ISDIR(mode):
        raise UnusableError(errno.EISDIR, f"{shown} is a directory, not a program.")
    if not stat.S_ISREG(mode):
        raise UnusableError(errno.EACCES, f"{shown} isn't a regular file, so it can't be run.")
    if not os.access(where, os.X_OK, effective_ids=True):
        raise UnusableError(
            errno.EACCES, f"The program {shown} may not be executed (mode {stat.S_IMODE(mode):04o}; chmod +x?)."
        )
    try:
        with open(where, "rb", buffering=0) as file:
            start = file.read(4096)
            interpreter = _interpreter(start, file.fileno())
    except PermissionError:
        return  # may be executed, not read: only the kernel can look
    except OSError as error:
        reason = f"The program {shown} can't be read: {error.strerror}."
        raise UnusableError(error.errno or errno.EIO, reason) from error
    if interpreter is None:
        if not _has_other_formats():
            raise UnusableError(
                errno.ENOEXEC, f"{shown} isn't a program: it is neither a binary nor does it begin with #! and a path."
            )
    elif interpreter and depth > 0:
        try:
            _require_runnable(interpreter, root, depth - 1, shown=interpreter)
        except UnusableError as error:
            raise UnusableError(error.errno, f"The program {shown} needs its interpreter. {error}") from error
    elif interpreter:
        raise UnusableError(errno.ELOOP, f"The program {shown} is interpreted by scripts, too many levels deep.")


def _interpreter(start: bytes, descriptor: int) -> str | None:
    """Return the program that runs a file: empty if it runs by itself, None if it is no program."""
    if start.startswith(b"#!"):
        words = start[2:_SCRIPT_LINE_BYTES].partition(b"\n")[0].split()
        return os.fsdecode(words[0]) if words else None
    if start.startswith(b"\x7fELF") and len(start) >= 64:
        return _elf_interpreter(start, descriptor)
    return None


def _elf_interpreter(start: bytes, descriptor: int) -> str:
    """Return the loader that a binary names (PT_INTERP), empty without one. Source: elf(5)."""
    is_wide, is_little = start[4] == 2, start[5] == 1

    def number(content: bytes, offset: int, size: int) -> int:
        return int.from_bytes(content[offset : offset + size], "little" if is_little else "big")

    table = number(start, 32, 8) if is_wide else number(start, 28, 4)
    entry_bytes = number(start, 54 if is_wide else 42, 2)
    count = number(start, 56 if is_wide else 44, 2)
    entries = os.pread(descriptor, entry_bytes * count, table)
    for begin in range(0, len(entries) - entry_bytes + 1, entry_bytes or 1):
        entry = entries[begin : begin + entry_bytes]
        if number(entry, 0, 4) == 3:
            offset = number(entry, 8, 8) if is_wide else number(entry, 4, 4)
            size = number(entry, 32, 8) if is_wide else number(entry, 16, 4)
            return os.fsdecode(os.pread(descriptor, min(size, 4096), offset).rstrip(b"\0"))
    return ""


def _has_other_formats() -> bool:
    """Return whether the system was taught to run other files than binaries and scripts (binfmt_misc)."""
    try:
        return bool(set(os.listdir("/proc/sys/fs/binfmt_misc")) - {"register", "status"})
    except OSError:
        return False
