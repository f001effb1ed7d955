"""``--database`` with a password: what the list of processes shows."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from toolyard.cli.server_options import remove_option

pytestmark = pytest.mark.requirement("cli:database:password")

WAIT_S = 60
NEEDS_PROC = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no /proc to look at the list of processes")


@NEEDS_PROC
@pytest.mark.parametrize("form", ["two words", "one word"])
@pytest.mark.parametrize("verb", ["serve", "worker"])
def test_a_password_is_gone_from_the_command_line_when_the_database_is_reached(
    project: Path, tmp_path: Path, verb: str, form: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as database:
        database.settimeout(WAIT_S)
        url = f"postgresql://me:geheim-4711@127.0.0.1:{database.getsockname()[1]}/none"
        option = ["--database", url] if form == "two words" else [f"--database={url}"]
        words = ["-m", "toolyard", verb, *option, "--home", str(tmp_path / "home"), "--project", str(project)]
        process = subprocess.Popen(
            [sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        try:
            database.accept()[0].close()  # it asks for the database only after its start
            place = Path("/proc", str(process.pid))
            view = (place / "cmdline").read_bytes().split(b"\0")[1:-1]
            stored = [word for word in words if word not in option]
            assert [os.fsdecode(word) for word in view] == stored
            assert f"TOOLYARD_DATABASE={url}".encode() in (place / "environ").read_bytes().split(b"\0")
        finally:
            process.kill()
            result = process.communicate(timeout=WAIT_S)[1]
    assert result.startswith(
        "Warning: the password in --database was visible in the process list. Set TOOLYARD_DATABASE"
    )
    assert "geheim" not in result


@NEEDS_PROC
def test_an_address_without_a_password_stays_where_it_is(project: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as database:
        database.settimeout(WAIT_S)
        url = f"postgresql://me@127.0.0.1:{database.getsockname()[1]}/none"
        words = ["-m", "toolyard", "worker", "--database", url, "--home", str(tmp_path / "home")]
        process = subprocess.Popen([sys.executable, *words, "--project", str(project)], stderr=subprocess.DEVNULL)
        try:
            database.accept()[0].close()
            assert url.encode() in Path("/proc", str(process.pid), "cmdline").read_bytes()
        finally:
            process.kill()
            process.wait(WAIT_S)


def test_every_form_of_the_option_is_taken_out() -> None:
    words = ["toolyard", "serve", "--database", "a", "--port", "1", "--database=b", "--database"]
    assert remove_option(words) == ["toolyard", "serve", "--port", "1"]
