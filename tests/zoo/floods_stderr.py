"""Writes as many MiB on stderr as it is told to, then answers."""

import os
import sys

os.write(2, b"first line\n")
for _ in range(int(sys.argv[1]) * 16):
    os.write(2, b"x" * 65536)
os.write(2, b"\nlast line\n")
sys.stdout.write('{"status": "success", "result": "done"}')
