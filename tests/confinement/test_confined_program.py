"""A user without privileges: covered folders and a network of its own come by a user namespace."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workspace.nobody import NOBODY, find_shared_python
from toolyard.confinement.profile import Network

SOURCES = Path(__file__).parents[2] / "src"
# become nobody, start the program under the profile as a host does, and print what became of it
HOST = """
import json, os, sys
os.setgroups([]); os.setgid({nobody}); os.setuid({nobody})
sys.path[:0] = [{sources!r}]
from toolyard.confinement.profile import Network, Profile
from toolyard.confinement.start import can_enter_directly, can_enter_with_program, start_process
if not can_enter_with_program():
    print(json.dumps("no user namespaces")); sys.exit()
assert not can_enter_directly()
profile = Profile(network=Network({network!r}), ports={ports!r}, read={read!r}, write={write!r}, covered={covered!r},
    views={views!r})
started = start_process(profile, [sys.executable, "-I", "-S", "-c", {code!r}], stdout=-1, stderr=-1, cwd={cwd!r})
out, error = started.process.communicate(timeout=60)
print(json.dumps([out.decode(), error.decode()]))
"""
pytestmark = [
    pytest.mark.requirement("confinement:unprivileged"),
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root can become another user"),
]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody can enter, with one to see and one to cover."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for path in ("tree/secret/own", "tree/open", "data"):
            (folder / path).mkdir(parents=True)
        (folder / "tree/secret/file").write_text("secret")
        (folder / "tree/secret/own/file").write_text("own")
        (folder / "tree/open/file").write_text("open")
        for entry in (folder, *folder.rglob("*")):
            shutil.chown(entry, NOBODY, NOBODY)
        yield folder


def run_as_nobody(code: str, **profile: Any) -> str:
    """Run Python code under a profile as a user without privileges; return what it prints."""
    fields = {
        "read": (),
        "write": (),
        "covered": (),
        "views": (),
        "ports": (),
        "network": Network.NONE.value,
        "cwd": "/",
        **profile,
    }
    host = HOST.format(nobody=NOBODY, sources=str(SOURCES), code=code, **fields)
    done = subprocess.run(
        [find_shared_python().program, "-I", "-c", host], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    if isinstance(result, str):
        pytest.skip(f"this machine gives others {result}")
    output, error = result
    assert error == ""
    return str(output)


def test_a_covered_folder_shows_a_note_and_only_what_is_granted_in_it(place: Path) -> None:
    tree = str(place / "tree")
    code = (
        f"import os; print(sorted(os.listdir({tree!r} + '/secret')), open({tree!r} + '/secret/own/file').read(),"
        f" open({tree!r} + '/open/file').read(), os.path.exists({tree!r} + '/secret/file'))"
    )
    output = run_as_nobody(code, read=(tree, f"{tree}/secret/own"), covered=(f"{tree}/secret",))
    assert output == "['HIDDEN-BY-TOOLYARD', 'own'] own open False\n"


@pytest.mark.requirement("confinement:views")
@pytest.mark.parametrize("granted", ["read", "write"])
def test_in_place_of_a_file_with_a_view_the_view_is_read_and_nobody_changes_it(place: Path, granted: str) -> None:
    tree, file, shown = (str(place / name) for name in ("tree", "tree/open/file", "data/shown"))
    (place / "data/shown").write_text("the view")
    code = f"""
import os
print(open({file!r}).read())
for change in (lambda: open({file!r}, "w"), lambda: os.unlink({file!r}), lambda: os.chmod({file!r}, 0o777)):
    try: print("changed", change())
    except OSError as error: print(type(error).__name__)
"""
    lines = run_as_nobody(code, **{granted: (tree,)}, views=((file, shown),)).splitlines()
    assert lines[0] == "the view"
    assert not any(line.startswith("changed") for line in lines)
    assert (place / "tree/open/file").read_text() == "open"


def test_nothing_can_be_written_where_a_folder_is_covered(place: Path) -> None:
    tree = str(place / "tree")
    code = f"""
import os
open({tree!r} + "/open/new", "w").close()
try: open({tree!r} + "/secret/new", "w")
except OSError as error: print(os.strerror(error.errno))
"""
    assert run_as_nobody(code, write=(tree,), covered=(f"{tree}/secret",)) == "Read-only file system\n"
    assert (place / "tree/open/new").exists()


def test_a_network_of_its_own_reaches_nothing_but_its_ports(place: Path) -> None:
    code = """
import socket
print(socket.create_connection(("127.0.0.1", 18080), 5).getpeername()[1])
for address in (("127.0.0.1", 18081), ("192.0.2.1", 80)):
    try: socket.create_connection(address, 5)
    except OSError as error: print(type(error).__name__)
"""
    output = run_as_nobody(code, network=Network.PORTS.value, ports=(18080,))
    assert output == "18080\nConnectionRefusedError\nOSError\n"


@pytest.mark.requirement("confinement:own-mounts")
def test_nothing_but_what_it_may_write_changes_its_mode_or_times(place: Path) -> None:
    code = f"""
import os
for path in ({str(place / "tree/open/file")!r}, {str(place / "data/file")!r}):
    attempts = (
        lambda: os.chmod(path, 0o600), lambda: os.utime(path), lambda: os.chown(path, os.getuid(), os.getgid()),
        lambda: os.setxattr(path, "user.test", b"x"), lambda: os.chmod(os.path.dirname(path), 0o700),
    )
    for attempt in attempts:
        try: print(attempt())
        except OSError as error: print(error.errno)
"""
    (place / "data/file").touch()
    shutil.chown(place / "data/file", NOBODY, NOBODY)
    refused, done = "30\n" * 5, "None\n" * 5
    assert run_as_nobody(code, read=(str(place / "tree"),), write=(str(place / "data"),)) == refused + done


def test_it_writes_in_the_folder_in_which_it_starts(place: Path) -> None:
    data = str(place / "tree/secret/own")
    code = "open('new', 'w').close(); print('written')"
    covered = (str(place / "tree"),)
    assert run_as_nobody(code, write=(data,), covered=covered, cwd=data) == "written\n"
    assert (place / "tree/secret/own/new").exists()


@pytest.mark.parametrize(
    ("program", "error"),
    [("missing", "FileNotFoundError"), ("file", "PermissionError"), ("script", "FileNotFoundError")],
)
def test_a_program_that_cannot_start_fails_as_anybody_elses_does(place: Path, program: str, error: str) -> None:
    (place / "file").touch(mode=0o644)
    (place / "script").write_text("#!/missing/interpreter\n")
    (place / "script").chmod(0o755)
    host = HOST.replace('[sys.executable, "-I", "-S", "-c", {code!r}]', "[{code!r}]")
    host = host.format(
        nobody=NOBODY, sources=str(SOURCES), code=str(place / program), network=Network.NONE.value, cwd="/", read=(),
        write=(), covered=(), views=(), ports=(),
    )  # fmt: skip
    done = subprocess.run(
        [find_shared_python().program, "-I", "-c", host], capture_output=True, text=True, timeout=120, check=False
    )
    if "no user namespaces" in done.stdout:
        pytest.skip("this machine gives others no user namespaces")
    assert error in done.stderr


@pytest.mark.requirement("confinement:links")
def test_what_has_become_a_link_is_not_granted(place: Path) -> None:
    (place / "link").symlink_to(place / "tree")
    with pytest.raises(AssertionError, match="has become a link"):
        run_as_nobody("print('started')", read=(str(place / "link/open"),))


def test_it_stays_who_it_was_and_gains_nothing(place: Path) -> None:
    code = """
import os
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status"))
print(os.getuid(), os.getgid(), int(status["CapEff"], 16), status["NoNewPrivs"].strip(), status["Seccomp"].strip())
for attempt in (lambda: os.setuid(0), lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)):
    try: attempt()
    except OSError: print("refused")
"""
    output = run_as_nobody(code, network=Network.PORTS.value, write=(str(place / "data"),))
    assert output == f"{NOBODY} {NOBODY} 0 1 2\nrefused\nrefused\n"
