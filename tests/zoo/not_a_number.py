"""Answers with what Python writes but JSON does not know, and with the same key twice."""

import sys

sys.stdout.write('{"status": "success", "mean": NaN, "most": -Infinity, "twice": 1, "twice": 2}')
