"""Fills the disk with one file that has no name."""

import os
import tempfile

with tempfile.TemporaryFile() as file:
    for _ in range(1024):
        os.write(file.fileno(), b"x" * 2**20)
