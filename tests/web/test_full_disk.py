"""A server on a disk of its own that is full, and a home that is read-only: real file systems."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.crash.scene import ENVIRONMENT, ROOT
from tests.crash.test_failing_disk import may_mount

pytestmark = pytest.mark.skipif(not may_mount(), reason="needs a file system of its own (unshare and mount)")

# Fills the disk while a server runs, asks it for everything that is stored, and makes room again.
SERVER = """
import asyncio, json, os, sys
from pathlib import Path
from tests.web.conftest import run_server

ASKED = {
    "call": ("POST", "/v1/tools/LS", {}),
    "key": ("POST", "/v1/keys", {"name": "x", "scopes": ["chat"]}),
    "setting": ("PATCH", "/v1/settings", {"values": {"history_days": 20}}),
    "schedule": ("POST", "/v1/schedules", {"tool": "LS", "arguments": {}, "cron": "0 8 * * *"}),
    "rule": ("POST", "/v1/approvals/rules", {"tool": "Write", "effect": "deny"}),
    "mcp": ("POST", "/v1/mcp/servers", {"mcpServers": {"a": {"command": "true"}}}),
    "backup": ("POST", "/v1/backup", None),
}

def fill(file):
    with open(file, "wb", buffering=0) as out:
        for size in (65536, 1024, 1):
            try:
                while True:
                    out.write(bytes(size))
            except OSError:
                pass

async def main(place):
    async with run_server(place) as running:
        async def ask():
            found = {}
            for name, (method, path, body) in ASKED.items():
                answer = await running.request(method, path, **({} if body is None else {"json": body}))
                found[name] = [answer.status, answer.json["error"]["message"] if answer.status >= 400 else ""]
            return found
        await running.post("/v1/tools/LS", {})
        fill(place / "filler")
        during = await ask()
        os.unlink(place / "filler")
        print(json.dumps({"during": during, "after": await ask()}))

asyncio.run(main(Path(sys.argv[1])))
"""


def run_on_small_disk(place: Path, then: str, *command: str) -> "subprocess.CompletedProcess[str]":
    """Run a command on a file system of 3 MiB at ``place``, which ``then`` prepares."""
    place.mkdir()
    script = f'mount -t tmpfs -o size=3m tmpfs "$0" && cd "$0" && {then} && cd {ROOT} && exec "$@"'
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, str(place), *command],
        capture_output=True, text=True, env=ENVIRONMENT, timeout=180, check=False,
    )  # fmt: skip


def toolyard(place: Path, *words: str) -> tuple[str, ...]:
    home, project = str(place / "home"), str(place.parent)
    return (sys.executable, "-m", "toolyard", *words, "--home", home, "--project", project)


@pytest.mark.requirement("home:unwritable", "r:R62")
def test_a_full_disk_answers_507_in_words_whatever_is_to_be_stored(tmp_path: Path) -> None:
    done = run_on_small_disk(tmp_path / "disk", "true", sys.executable, "-c", SERVER, str(tmp_path / "disk"))
    assert done.returncode == 0, done.stderr
    result: dict[str, dict[str, Any]] = json.loads(done.stdout)
    assert {name: status for name, (status, _) in result["during"].items()} == dict.fromkeys(result["during"], 507)
    assert [name for name, (_, output) in result["during"].items() if "the disk is full" not in output] == []
    assert [one for one in result["after"].items() if one[1][0] >= 400] == []


@pytest.mark.requirement("home:unwritable", "r:R62")
@pytest.mark.parametrize("words", [("serve", "--port", "0"), ("call", "LS")])
def test_a_start_on_a_full_disk_says_so(tmp_path: Path, words: tuple[str, ...]) -> None:
    place = tmp_path / "disk"
    filled = "mkdir home && { head -c 9m /dev/zero > filler || true; }"
    done = run_on_small_disk(place, filled, *toolyard(place, *words))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].startswith(f"toolyard: the disk is full: {place / 'home'}"), done.stderr


@pytest.mark.requirement("home:unwritable", "r:R63")
@pytest.mark.parametrize("words", [("serve", "--port", "0"), ("call", "LS"), ("journal", "list"), ("doctor",)])
def test_a_home_that_is_mounted_read_only_is_named_as_such(tmp_path: Path, words: tuple[str, ...]) -> None:
    place = tmp_path / "disk"
    made = " ".join(f"'{word}'" for word in toolyard(place, "call", "LS"))
    done = run_on_small_disk(
        place, f'{{ cd {ROOT}; {made} > /dev/null; }} && mount -o remount,ro "$0"', *toolyard(place, *words)
    )
    output = done.stdout + done.stderr
    assert done.returncode == 1
    assert ("read-only" in output, str(place / "home") in output, "restore" in output) == (True, True, False), output
