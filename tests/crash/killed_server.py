"""``toolyard``, killed when it comes to a crash point: ``python -m tests.crash.killed_server POINT:N WORDS``."""

import sys

from tests.crash.host import kill_at
from toolyard.cli import toolyard

if __name__ == "__main__":
    name, _, number = sys.argv[1].partition(":")
    kill_at(name, int(number))
    toolyard(sys.argv[2:])
