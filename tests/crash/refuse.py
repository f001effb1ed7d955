"""A kernel that says no: from a moment on, this process gets an error from chosen system calls.

Done by a filter of the kernel (seccomp), so that SQLite meets it as well as Python. It cannot be taken back.
"""

import ctypes
import platform
import struct
import sys

_CALLS = {  # their numbers on the machines that tests run on
    "x86_64": {"fsync": 74, "fdatasync": 75},
    "aarch64": {"fsync": 82, "fdatasync": 83},
}
_NO_NEW_PRIVS, _SECCOMP, _FILTER = 38, 22, 2
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
AVAILABLE = sys.platform == "linux" and platform.machine() in _CALLS


def refuse(error: int, *names: str) -> None:
    """Every thread of this process gets ``error`` from these calls, from now on."""
    numbers = [_CALLS[platform.machine()][name] for name in names]
    code = [struct.pack("HBBI", _LOAD, 0, 0, 0)]
    for left, number in zip(reversed(range(len(numbers))), numbers, strict=True):
        code.append(struct.pack("HBBI", _EQUAL, left + 1, 0, number))
    code.append(struct.pack("HBBI", _RETURN, 0, 0, _ALLOW))
    code.append(struct.pack("HBBI", _RETURN, 0, 0, _ERROR | error))
    body = ctypes.create_string_buffer(b"".join(code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code), ctypes.addressof(body)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    seccomp = {"x86_64": 317, "aarch64": 277}[platform.machine()]
    if libc.syscall(seccomp, 1, 1, ctypes.byref(program)):  # a filter, for all threads
        raise OSError(ctypes.get_errno(), "seccomp")
