"""Reports an error and exits as if all was well."""

import sys

sys.stdout.write('{"status": "error", "error": "no such city"}')
