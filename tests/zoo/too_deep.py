"""Answers with 100,000 objects in each other."""

import sys

sys.stdout.write('{"status": "success", "a": ' * 100_000 + "1" + "}" * 100_000)
