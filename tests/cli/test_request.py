"""``toolyard request parse`` and ``toolyard.parse_requests``: the same list, from a file or from stdin."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import toolyard

pytestmark = pytest.mark.requirement("request:output")
REPLY = (
    "好的 😀\r\n<<<[TOOL_REQUEST]>>>\r\nmaid:「始」Nova「末」,\r\ntool_name:「始」Read「末」,\r\n"
    "path:「始」a\r\nb「末」\r\n"
    "<<<[END_TOOL_REQUEST]>>>\r\n<<<[TOOL_REQUEST]>>>\r\npath:「始」x「末」\r\n<<<[END_TOOL_REQUEST]>>>"
)


def run(*words: str, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-m", "toolyard", "request", "parse", *words]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=180)


def test_a_file_and_stdin_give_what_python_gives(tmp_path: Path) -> None:
    file = tmp_path / "reply.txt"
    file.write_bytes(REPLY.encode())
    for done in (run(str(file)), run(stdin=REPLY.encode()), run("-", "--json", stdin=REPLY.encode())):
        assert (done.returncode, done.stderr) == (0, b"")
        records = json.loads(done.stdout)
        assert records == toolyard.parse_requests(REPLY)
        assert records[0]["args"] == {"maid": "Nova", "path": "a\r\nb"}
        assert REPLY[slice(*records[0]["span"])].endswith("<<<[END_TOOL_REQUEST]>>>")
        assert [record["ok"] for record in records] == [True, False]


def test_text_without_requests_is_an_empty_list() -> None:
    assert json.loads(run(stdin=b"hello").stdout) == []
    assert json.loads(run(stdin=b"\xff\xfe\x00 not utf-8").stdout) == []


def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path: Path) -> None:
    for file in (tmp_path / "none.txt", tmp_path):
        done = run(str(file))
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"cannot read" in done.stderr


@pytest.mark.requirement("cli:exit:success")
def test_a_stream_that_is_closed_is_an_empty_one() -> None:
    """Descriptors 0 to 2 are closed, as under some supervisors."""
    command = [sys.executable, "-m", "toolyard", "request", "parse"]
    for closed in ("<&-", ">&-", "<&- >&- 2>&-"):
        shell = ["/bin/sh", "-c", f'"$@" {closed}', "sh", *command]
        done = subprocess.run(shell, input=b"hello", capture_output=True, check=False, timeout=180)
        view = b"[]" if ">" not in closed else b""
        assert (done.returncode, done.stdout.strip(), done.stderr) == (0, view, b"")
