"""A good one: says what it was started with."""

import json
import os
import resource
import sys

number, _ = resource.getrlimit(10)
said = {
    "status": "success",
    "environment": dict(os.environ),
    "number": number,
    "cwd": os.getcwd(),
    "leads_a_session": os.getsid(0) == os.getpid(),
    "descriptors": [number for number in range(100) if os.path.exists(f"/dev/fd/{number}")],
}
sys.stdout.write(json.dumps(said))
