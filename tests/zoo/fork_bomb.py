"""Forks without end, as bombs do; ends by itself at 400 in case nobody stops it."""

import os
import signal

for _ in range(400):
    if os.fork() == 0:
        os.setsid()
        while True:
            signal.pause()
while True:
    signal.pause()
