"""Opens files until it may not, then says how many it got."""

import json
import os
import sys

held: list[int] = []
try:
    while len(held) < 100_000:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error:
    sys.stdout.write(json.dumps({"status": "error", "error": f"{error.strerror} after {len(held)}"}))
