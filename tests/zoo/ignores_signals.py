"""Never ends, and does not listen to polite signals. Says on stderr when it is ready to ignore them."""

import signal
import sys

for polite in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(polite, signal.SIG_IGN)
sys.stderr.write("ready\n")
sys.stderr.flush()
while True:
    signal.pause()
