"""Is killed, as by the kernel when memory runs out."""

import os
import signal

os.kill(os.getpid(), signal.SIGKILL)
