"""Stops in the middle of its answer: by exit 0, by exit 1 or by a signal."""

import os
import signal
import sys

os.write(2, b"early\n" + b"." * 3000 + b"\nout of words\n")
os.write(1, b'{"status": "success", "result": {"status": "success", "inner": 1}, "more": "' + b"z" * 3000)
if sys.argv[1] == "signal":
    os.kill(os.getpid(), signal.SIGSEGV)
sys.exit(int(sys.argv[1]))
