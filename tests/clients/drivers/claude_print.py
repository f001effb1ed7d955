# mypy: ignore-errors
"""Claude Code in print mode, which streams unless a stream breaks."""

import os
import subprocess
import tempfile

from driver import run_driver


class CommandFailed(Exception):
    """Raised when the command exits with an error; carries what it wrote."""


def chat(url: str, key: str, text: str, is_streamed: bool) -> str:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [os.environ["PROGRAM"], "-p", text, "--model", "scripted+tools"],  # it brings its own tools
            env={
                "PATH": os.environ["PATH"],
                "HOME": folder,
                "ANTHROPIC_BASE_URL": url,
                "ANTHROPIC_API_KEY": key,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            },
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise CommandFailed(done.stdout + done.stderr)
    return done.stdout


run_driver(chat, chat)
