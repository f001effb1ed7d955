"""A good one: says what it was told."""

import json
import sys

told = json.load(sys.stdin)
sys.stdout.write(json.dumps({"status": "success", "result": told}))
