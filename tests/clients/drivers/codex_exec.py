# mypy: ignore-errors
"""Codex CLI: ``codex exec``, which always streams."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from driver import run_driver


class CommandFailed(Exception):
    """Raised when the command exits with an error; carries what it wrote."""


def run(url: str, key: str, text: str, model: str, **more: bool) -> str:
    provider = {"name": "Toolyard", "base_url": url, "env_key": "TOOLYARD_KEY", "wire_api": "responses", **more}
    given = {"model": model, "model_provider": "toolyard"} | {
        f"model_providers.toolyard.{name}": value for name, value in provider.items()
    }
    options = [word for name, value in given.items() for word in ("-c", f"{name}={json.dumps(value)}")]
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer"
        words = ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", *options)
        done = subprocess.run(
            [os.environ["PROGRAM"], *words, "--output-last-message", str(answer), text],
            env={"PATH": os.environ["PATH"], "HOME": folder, "TOOLYARD_KEY": key},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise CommandFailed(done.stdout + done.stderr)
        return answer.read_text()


def chat(url: str, key: str, text: str, is_streamed: bool) -> str:
    return run(url, key, text, "scripted+tools")  # it brings its own tools


if __name__ == "__main__":
    run_driver(chat, chat)
