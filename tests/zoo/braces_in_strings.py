"""Answers with text that looks like the end of the answer."""

import json
import sys

sys.stdout.write(json.dumps({"status": "success", "result": 'if (x) {y} else } \\" {"status": "error"} '}))
