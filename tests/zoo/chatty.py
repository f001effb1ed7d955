"""Prints log lines, some with braces, before and after its answer."""

import sys

sys.stdout.write("loading model {not json\nargs: {'a': 1}\n")
sys.stdout.write('{"level": "info", "message": "no status"}\n')
sys.stdout.write('{"status": "success", "result": "done"}\nbye {\n')
