"""Answers with JSON over many lines, as Windows writes them, after a byte order mark."""

import json
import os

text = json.dumps({"status": "success", "result": {"list": [1, 2]}}, indent=2)
os.write(1, b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode() + b"\r\n")
