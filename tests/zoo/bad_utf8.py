"""Answers with a byte that is no UTF-8 inside a string."""

import os

os.write(1, b'{"status": "success", "result": "caf\xe9"}')
