"""Never ends, and says nothing."""

import signal

while True:
    signal.pause()
