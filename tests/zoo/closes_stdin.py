"""Closes stdin at once, then answers."""

import os
import sys

os.close(0)
sys.stdout.write('{"status": "success", "result": "done"}')
