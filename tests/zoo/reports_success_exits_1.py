"""Reports success and exits as if it had failed."""

import sys

sys.stdout.write('{"status": "success", "result": "done"}')
sys.exit(1)
