"""Starts 50 processes that fork twice, lead sessions of their own, close everything and ignore polite signals."""

import os
import signal
import sys

for _ in range(50):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            for descriptor in range(3):
                os.close(descriptor)
            while True:
                signal.pause()
        os._exit(0)
sys.stdout.write('{"status": "success", "result": "scattered"}')
