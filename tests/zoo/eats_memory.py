"""Takes memory without end."""

held: list[bytes] = []
while True:
    held.append(b"x" * 2**22)
