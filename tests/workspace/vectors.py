"""The shared test vectors: read where they lie beside the repository, skipped where they do not."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "../shared/vectors"


def vectors(name: str) -> Any:
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"the shared vectors are not here: {path}")
    return json.loads(path.read_text(encoding="utf-8"))


def put(root: Path, files: dict[str, Any]) -> None:
    """Create files as the vectors describe them: a text, raw bytes, a link, a folder, or a number of lines."""
    for name, what in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        match what:
            case str():
                path.write_bytes(what.encode())
            case {"b64": str(raw)}:
                path.write_bytes(base64.b64decode(raw))
            case {"symlink": str(target)}:
                path.symlink_to(target.replace("<ROOT>", str(root)))
            case {"dir": True}:
                path.mkdir(exist_ok=True)
            case {"content": content}:
                put(root, {name: content})
            case {"lines": int(count), "of": str(line)}:
                path.write_text("".join(f"{line.format(n=number)}\n" for number in range(1, count + 1)))
            case _:
                raise ValueError(f"unknown kind of file: {what}")
