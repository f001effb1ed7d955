"""Dependencies are locked with hashes, and none has a known vulnerability."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLOORS = {  # security J, and what is known since
    "starlette": (1, 3, 1),
    "python-multipart": (0, 0, 26),
    "mcp": (1, 23),
    "h11": (0, 16),
    "aiohttp": (3, 13),
}


def _locked(text: str) -> dict[str, tuple[int, ...]]:
    result = re.findall(r"^([a-z0-9_.-]+)==([0-9.]+)", text, re.MULTILINE)
    return {name: tuple(int(part) for part in version.strip(".").split(".")) for name, version in result}


@pytest.mark.requirement("supply:floors")
@pytest.mark.parametrize("name", ["run.txt", "dev.txt"])
def test_locked_dependencies_are_not_older_than_is_safe(name: str) -> None:
    locked = _locked((ROOT / "requirements" / name).read_text("utf-8"))
    assert {"starlette", "fastapi", "uvicorn", "websockets"} <= set(locked)
    assert {one: locked[one] for one, floor in FLOORS.items() if one in locked and locked[one] < floor} == {}


@pytest.mark.requirement("supply:floors")
@pytest.mark.parametrize("name", ["run.txt", "dev.txt"])
def test_every_locked_dependency_has_a_hash(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text("utf-8")
    blocks = re.split(r"\n(?=[a-z0-9])", text.strip())
    assert len(blocks) > 40
    assert [block.split("==")[0] for block in blocks if "--hash=sha256:" not in block] == []
