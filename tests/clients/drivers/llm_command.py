# mypy: ignore-errors
"""The command ``llm``."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from driver import run_driver


class CommandFailed(Exception):
    """Raised when the command exits with an error; carries what it wrote to stderr."""


def chat(url: str, key: str, text: str, is_streamed: bool) -> str:
    with tempfile.TemporaryDirectory() as folder:
        model = {"model_id": "scripted", "model_name": "scripted", "api_base": url, "api_key_name": "toolyard"}
        (Path(folder) / "extra-openai-models.yaml").write_text(json.dumps([model]))
        command = [str(Path(sys.executable).with_name("llm")), "-m", "scripted", "--key", key]
        done = subprocess.run(
            [*command, *(() if is_streamed else ("--no-stream",)), text],
            env={**os.environ, "LLM_USER_PATH": folder},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise CommandFailed(done.stderr)
    return done.stdout


run_driver(chat)
