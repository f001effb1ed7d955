"""Answers and ends, but leaves a process behind that holds its stdout."""

import os
import signal
import sys

if os.fork() == 0:
    while True:
        signal.pause()
sys.stdout.write('{"status": "success", "result": "done"}\n')
