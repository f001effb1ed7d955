"""Answers with 10 MB on one line, among noise."""

import sys

sys.stdout.write("start {\n")
sys.stdout.write('{"status": "success", "result": "' + "{}" * 5_000_000 + '"}\n')
