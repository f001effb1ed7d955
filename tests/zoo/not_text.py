"""Prints bytes that are neither text nor JSON."""

import os

os.write(1, b"\x89PNG\r\n\x1a\n\x00\x00\xff\xfe")
