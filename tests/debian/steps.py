"""The ways in which a newcomer installs Toolyard, each from nothing to the first tool call, as shell scripts.

``/srv/toolyard.bundle`` is the repository, ``/srv/*.whl`` the wheel. ``SERVE`` and ``TEST`` use what ``CLONE`` made,
``OFFLINE`` what ``PIPX`` installed, ``UV`` and ``UVX`` what ``GET_UV`` brought.
"""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.debian.root import DebianRoot

ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    script: str
    network: bool = True


CLONE: Final = Step(
    "clone, make install, call",
    """
    rm -rf toolyard
    git clone --quiet /srv/toolyard.bundle toolyard
    cd toolyard
    make install
    .venv/bin/toolyard call LS path=src
    """,
)
# The address, the sign-in with the printed link and the key are what a person would use.
SERVE: Final = Step(
    "make run without a network",
    """
    cd toolyard
    TOOLYARD_PORT=6105 make run >server.log 2>&1 &
    for _ in $(seq 600); do grep -q 'sign in: ' server.log && break; kill -0 $! || break; sleep 0.1; done
    cat server.log
    link=$(sed -n 's/^Open this link once to sign in: //p' server.log)
    python3 - "$link" <<'END'
import http.cookiejar, json, sys, urllib.parse, urllib.request
address, _, link = sys.argv[1].partition("/login?link=")
browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
browser.open(f"{address}/login?link={link}")
browser.open(f"{address}/login", urllib.parse.urlencode({"link": link, "next": "/"}).encode())
print("signed in as", json.load(browser.open(f"{address}/v1/session"))["key"])
END
    kill %1
    wait %1 || true
    """,
    network=False,
)
TEST: Final = Step(
    "make test: the suite is collected, a part of it runs",
    """
    cd toolyard
    make .venv/.installed-dev
    .venv/bin/python -m pytest -q --collect-only | tail -n 1
    .venv/bin/python -m pytest -q -n 0 tests/tools/test_ls.py tests/protocol/test_envelope.py
    .venv/bin/python -m pytest -q -n 0 tests/console/test_shell.py
    """,
)
PIP: Final = Step(
    "the wheel with pip, call",
    """
    rm -rf by-pip
    python3 -m venv by-pip
    by-pip/bin/pip install --quiet /srv/*.whl
    by-pip/bin/toolyard call LS
    """,
)
PIPX: Final = Step(
    "the wheel with pipx, call",
    """
    pipx install --force /srv/*.whl
    toolyard call LS
    """,
)
OFFLINE: Final = Step("the wheel without a network, call", "toolyard call LS; pipx uninstall toolyard", network=False)
GET_UV: Final = Step("get uv", "python3 -m venv uv; uv/bin/pip install --quiet uv")
UV: Final = Step("the wheel with uv tool, call", "uv/bin/uv tool install --force /srv/*.whl; toolyard call LS")
UVX: Final = Step(
    "uvx, call", "uv/bin/uv tool uninstall toolyard || true; uv/bin/uvx --from /srv/*.whl toolyard call LS"
)


def add_sources(root: DebianRoot, scratch: Path) -> None:
    """Put the repository, as this checkout has it, and the wheel that it builds into ``/srv``."""
    place = root.folder / "srv"
    wheels = scratch / "dist"
    if not wheels.exists():
        checkout = scratch / "checkout"
        _copy_checkout(checkout)
        _run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(wheels), cwd=checkout)
        _run("git", "init", "--quiet", "--initial-branch=main", cwd=checkout)
        _run("git", "add", "--all", cwd=checkout)
        _run("git", "-c", "user.name=me", "-c", "user.email=me@example.org", "commit", "-qm", "All", cwd=checkout)
        _run("git", "bundle", "create", "--quiet", str(wheels / "toolyard.bundle"), "HEAD", "main", cwd=checkout)
    for file in wheels.iterdir():
        shutil.copy(file, place)


def _copy_checkout(to: Path) -> None:
    """Copy the tracked and new files, as a clone would have them."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    for name in filter(None, subprocess.check_output(command, cwd=ROOT, text=True).split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)


def _run(*command: str, cwd: Path) -> None:
    subprocess.run(command, cwd=cwd, check=True, capture_output=True)
