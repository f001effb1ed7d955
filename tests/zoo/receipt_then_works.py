"""Gives a receipt that looks as if it ended early, then goes on talking until it is stopped."""

import sys
import time

sys.stdout.write('{\n  "status": "success",\n  "result": "see {{VCP_ASYNC_RESULT::X::1}} later"\n}\n')
sys.stdout.flush()
while True:
    sys.stdout.write("still working " * 1000 + "\n")
    sys.stdout.flush()
    time.sleep(0.01)
