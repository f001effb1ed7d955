"""The packages that PostgreSQL needs: the extra ``postgres``, which a plain installation leaves out."""

import importlib.util
import shlex
import sys
from typing import Final

PACKAGES: Final = ("asyncpg", "pgqueuer")


def install_command() -> str:
    """Return the command that installs them for this Python, wherever Toolyard itself came from."""
    if importlib.util.find_spec("pip"):
        return shlex.join([sys.executable, "-m", "pip", "install", *PACKAGES])
    return shlex.join(["uv", "pip", "install", "--python", sys.executable, *PACKAGES])  # an environment that uv made
