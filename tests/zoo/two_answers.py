"""Answers twice."""

import sys

sys.stdout.write('{"status": "success", "result": "first"}\n{"status": "success", "result": "second"}\n')
