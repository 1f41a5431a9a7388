"""Which system calls a confined command doesn't get, and their numbers.

What they have in common: no build, test or service needs them, and each is either a way around the other walls or a
part of the kernel that is attacked more than it is used. Source: the kernel's syscall tables; reliability.md section 2.
"""

from __future__ import annotations

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH_* by machine. All of them are little-endian, which the offsets of arguments rely on."""

_COMMON = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "pidfd_getfd": 438,
    "mount_setattr": 442, "quotactl_fd": 443, "open_tree_attr": 467, "setxattrat": 463, "removexattrat": 466,
}
"""Numbers above 423 are the same on every architecture."""

_X86_64 = {
    "ioctl": 16, "socket": 41, "clone": 56, "ptrace": 101, "syslog": 103, "pivot_root": 155, "acct": 163,
    "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169,
    "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176,
    "quotactl": 179, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198,
    "fremovexattr": 199, "clock_settime": 227, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250,
    "unshare": 272, "perf_event_open": 298, "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310,
    "process_vm_writev": 311, "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
}

_AARCH64 = {
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
    "ioctl": 29, "umount2": 39, "mount": 40, "pivot_root": 41, "quotactl": 60, "acct": 89, "unshare": 97,
    "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112, "syslog": 116, "ptrace": 117,
    "reboot": 142, "sethostname": 161, "setdomainname": 162, "settimeofday": 170, "socket": 198, "add_key": 217,
    "request_key": 218, "keyctl": 219, "clone": 220, "swapon": 224, "swapoff": 225, "perf_event_open": 241,
    "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "finit_module": 273,
    "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
}

NUMBERS = {"x86_64": {**_COMMON, **_X86_64}, "aarch64": {**_COMMON, **_AARCH64}}

NOT_PERMITTED = (
    # into other processes
    "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd",
    # other views of the file system
    "mount", "umount2", "move_mount", "open_tree", "open_tree_attr", "fsopen", "fsconfig", "fsmount", "fspick",
    "mount_setattr", "pivot_root", "setns", "open_by_handle_at",
    # work that no filter sees, and parts of the kernel that are attacked more than used
    "io_uring_setup", "io_uring_enter", "io_uring_register", "bpf", "perf_event_open", "userfaultfd",
    "add_key", "request_key", "keyctl",
    # the machine itself
    "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot", "swapon", "swapoff",
    "acct", "syslog", "quotactl", "quotactl_fd", "settimeofday", "clock_settime", "sethostname", "setdomainname",
    "iopl", "ioperm",
)

SET_ATTRIBUTES = (
    "setxattr", "lsetxattr", "fsetxattr", "setxattrat",
    "removexattr", "lremovexattr", "fremovexattr", "removexattrat",
)
"""Answered as by a file system that has no extended attributes, which every program knows to live with."""
