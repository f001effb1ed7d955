"""The command that starts a server again, for people to paste."""

import shlex
import sys

from toolyard.config import Config


def format_serve_command(config: Config) -> str:
    program = "python -m toolyard" if sys.argv[0].endswith("__main__.py") else "toolyard"
    return f"{program} serve --home {shlex.quote(str(config.home))} --project {shlex.quote(str(config.project))}"
