"""Plugins for the console's tests: one with a field of every type, one that ends in every way, and any other."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any, Final

MANIFEST: Final = "plugin-manifest.json"

SHAPES: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "description": "What it is called.", "minLength": 2},
        "colour": {"type": "string", "enum": ["red", "green", "blue"]},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "sure": {"type": "boolean"},
        "deep": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {"type": "object", "properties": {"city": {"type": "string"}, "zip": {"type": "integer"}}},
        "note": {"type": ["string", "null"]},
        "size": {"oneOf": [{"type": "integer"}, {"title": "box", "properties": {"w": {"type": "integer"}}}]},
        "parts": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
        "rest": {"type": "object"},
    },
    "required": ["title", "colour", "count", "sure"],
}  # fmt: skip

ECHO: Final = """
import json, sys
given = json.loads(sys.stdin.buffer.read() or b"{}")
print(json.dumps({"status": "success", "result": {"message": "It came.", "given": given}}))
"""

ENDINGS: Final = """
import json, sys, time
act = json.loads(sys.stdin.buffer.read() or b"{}").get("act")
if act == "sleep":
    time.sleep(300)
if act == "noise":
    print("this line is no answer")
    print("a word on stderr", file=sys.stderr)
if act == "error":
    print(json.dumps({"status": "error", "error": {"code": "NOT_FOUND", "message": "there is no such star"}}))
else:
    print(json.dumps({"status": "partial" if act == "partial" else "success", "result": "the answer to " + str(act)}))
"""


def manifest(name: str, **fields: Any) -> dict[str, Any]:
    parameters = fields.pop("parameters", {"type": "object", "properties": {"text": {"type": "string"}}})
    command = {"command": "do", "description": fields.pop("said", "Does it."), "parameters": parameters}
    return {
        "name": name,
        "displayName": name,
        "pluginType": "synchronous",
        "entryPoint": {"command": "python act.py"},
        "communication": {"protocol": "stdio", "timeout": 30000},
        "capabilities": {"invocationCommands": [command]},
        "risk": "read",
        "warmStart": False,
        **fields,
    }


def plugin(folder: Path, name: str, *, script: str = ECHO, **fields: Any) -> Path:
    """A plugin in a folder of its own; ``fields`` are its manifest's, ``said`` and ``parameters`` its command's."""
    own = folder / name
    own.mkdir(parents=True)
    (own / "act.py").write_text(script)
    (own / MANIFEST).write_text(json.dumps(manifest(name, **fields), indent=2, ensure_ascii=False))
    return own


def zipped(name: str, *, script: str, **fields: Any) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr(f"{name}/{MANIFEST}", json.dumps(manifest(name, **fields)))
        archive.writestr(f"{name}/act.py", script)
    return held.getvalue()


def leaving(mark: Path) -> str:
    """A script that leaves a mark when it runs."""
    return f"open({str(mark)!r}, 'a').write('ran')\n{ECHO}"


def acts(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"act": {"type": "string", "enum": list(names)}}, "required": ["act"]}
