"""Answers and does not exit, as a program with an open handle; goes on talking on stderr, or on stdout if told to."""

import sys
import time

sys.stdout.write('{"status": "success", "result": "done"}\n')
sys.stdout.flush()
out = sys.stdout if "babbles" in sys.argv else sys.stderr
while True:
    out.write("still here\n")
    out.flush()
    time.sleep(0.01)
