"""A small interpreter for seccomp filters: what the kernel would do with a system call."""

import struct
from collections.abc import Sequence

ALLOW = 0x7FFF0000
ERRNO = 0x00050000
_MASK = 0xFFFFFFFF


def decode(program: bytes) -> list[tuple[int, int, int, int]]:
    return list(struct.iter_unpack("HBBI", program))


def run_filter(program: bytes, architecture: int, number: int, arguments: Sequence[int] = ()) -> int:
    """Return the value that a filter returns for a system call."""
    words = [*arguments, *[0] * 6][:6]
    data = struct.pack("<IIQ6Q", number, architecture, 0, *(word & 0xFFFFFFFFFFFFFFFF for word in words))
    lines = decode(program)
    accumulator, position = 0, 0
    while True:
        code, if_true, if_false, constant = lines[position]
        position += 1
        match code:
            case 0x20:  # load a word
                accumulator = int.from_bytes(data[constant : constant + 4], "little")
            case 0x54:
                accumulator = accumulator & constant & _MASK
            case 0x15:
                position += if_true if accumulator == constant else if_false
            case 0x45:
                position += if_true if accumulator & constant else if_false
            case 0x35:
                position += if_true if accumulator >= constant else if_false
            case 0x06:
                return constant
            case _:
                raise AssertionError(f"an instruction that no filter should have: {code:#x}")
