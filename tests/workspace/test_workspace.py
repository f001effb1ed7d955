"""The only way into the project root: nothing leads outside, whatever is asked and whatever changes meanwhile."""

import errno
import json
import os
import resource
import socket
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import toolyard
from tests.workspace.answers import code, entries, paths
from tests.workspace.nobody import NOBODY, call_as_nobody, shared_project
from tests.workspace.vectors import put, vectors
from toolyard.blocking import BlockingYard
from toolyard.protocol.envelope import Envelope, ErrorCode, Failure
from toolyard.workspace.path_walk import PathWalk, to_failure
from toolyard.workspace.workspace import Workspace

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
RACES = 1000 if SOAK else 60  # reads of a path that is swapped meanwhile
MET = 20 if SOAK else 3  # of them, at least, on each side of the race
WAIT_S = 60.0
SECRET = "the secret outside"

DENIED, MISSING, INVALID = ErrorCode.ACCESS_DENIED, ErrorCode.NOT_FOUND, ErrorCode.INVALID_PARAM

# {root} is the project's absolute path, {outside} a folder beside it.
HOSTILE: list[tuple[str, ErrorCode]] = [
    ("..", DENIED),
    ("../", DENIED),
    ("../..", DENIED),
    ("../" * 1000, DENIED),
    ("../../etc/passwd", DENIED),
    ("../outside", DENIED),
    ("../outside/secret.txt", DENIED),
    ("./../outside/secret.txt", DENIED),
    (".//..//outside/secret.txt", DENIED),
    ("src/..//../outside/secret.txt", DENIED),
    ("src/./../../outside/secret.txt", DENIED),
    ("src/sub/../../../outside/secret.txt", DENIED),
    ("a/../../b", DENIED),
    ("missing/../../outside/secret.txt", DENIED),
    ("a.txt/../../outside/secret.txt", DENIED),
    ("missing/../..", DENIED),
    ("/", DENIED),
    ("//", DENIED),
    ("/.", DENIED),
    ("/..", DENIED),
    ("/etc", DENIED),
    ("/etc/passwd", DENIED),
    ("///etc/passwd", DENIED),
    ("/./etc/passwd", DENIED),
    ("//host/share", DENIED),
    ("/proc/self/environ", DENIED),
    ("/proc/self/root/etc/passwd", DENIED),
    ("/proc/self/cwd", DENIED),
    ("/dev/zero", DENIED),
    ("/dev/stdin", DENIED),
    ("/dev/fd/0", DENIED),
    ("{outside}", DENIED),
    ("{outside}/secret.txt", DENIED),
    ("{root}/..", DENIED),
    ("{root}/../outside/secret.txt", DENIED),
    ("{root}/src/../../outside/secret.txt", DENIED),
    ("{root}-secret/x", DENIED),
    ("{root}x", DENIED),
    ("{root}\\..\\outside", DENIED),
    ("link_folder", DENIED),
    ("link_folder/secret.txt", DENIED),
    ("link_folder/missing", DENIED),
    ("link_file", DENIED),
    ("src/../link_folder/secret.txt", DENIED),
    ("link_root", DENIED),
    ("link_root/etc/passwd", DENIED),
    ("link_up", DENIED),
    ("link_up/outside/secret.txt", DENIED),
    ("link_chain", DENIED),
    ("link_chain/secret.txt", DENIED),
    ("src/link_deep/secret.txt", DENIED),
    ("link_dangling", MISSING),
    ("link_loop", MISSING),
    ("link_loop/x", MISSING),
    ("~", MISSING),
    ("~/.ssh/id_rsa", MISSING),
    ("~root/.bashrc", MISSING),
    ("$HOME", MISSING),
    ("${HOME}/x", MISSING),
    ("%2e%2e/%2e%2e/etc/passwd", MISSING),
    ("..%2foutside%2fsecret.txt", MISSING),
    ("..\\..\\x", MISSING),
    ("..\\outside\\secret.txt", MISSING),
    ("C:\\x", MISSING),
    ("C:/x", MISSING),
    ("\\\\host\\share", MISSING),
    ("file:///etc/passwd", MISSING),
    ("http://127.0.0.1:6005/", MISSING),
    ("a.txt:stream", MISSING),
    ("gpj.\u202etxt", MISSING),
    ("\uff0e\uff0e/outside/secret.txt", MISSING),
    ("\u2025/outside/secret.txt", MISSING),
    ("..\u2215outside\u2215secret.txt", MISSING),
    ("..\u2044outside", MISSING),
    (" ../outside/secret.txt", MISSING),
    (".. /outside/secret.txt", MISSING),
    ("...", MISSING),
    ("..../x", MISSING),
    ("| cat /etc/passwd", MISSING),
    ("`id`", MISSING),
    ("$(id)", MISSING),
    ("*", MISSING),
    ("-rf", MISSING),
    ("\\x2e\\x2e/outside/secret.txt", MISSING),
    ("\ufeffa.txt", MISSING),
    ("a.txt ", MISSING),
    ("a.txt\n", MISSING),
    ("a.txt/x", MISSING),
    ("a.txt/../a.txt", MISSING),
    ("a/" * 3000, MISSING),
    ("x\0.txt", INVALID),
    ("\0", INVALID),
    ("a.txt\0", INVALID),
    ("../\0", INVALID),
    ("/etc/passwd\0.txt", INVALID),
    ("", INVALID),
    ("\ud800", INVALID),
    ("\udcff.txt", INVALID),
    ("x" * 300, INVALID),
    ("é" * 300, INVALID),
]

ODD_NAMES = [
    "x:stream",
    "[...slug].tsx",
    "a&b;c.txt",
    "名前.txt",
    "$HOME.txt",
    "~",
    "..foo",
    "foo..",
    "...",
    "-rf",
    " lead",
    "trail ",
    "a\nb",
    "\\",
    "..\\x",
    "%2e%2e",
    "file:",
    "*.txt",
    "x\u202etxt",
    "\x01",
    "😀" * 63,
    "x" * 255,
    "\\xe9",
    "e\u0301",
]


@pytest.fixture
def outside(project: Path) -> Path:
    """A folder beside the project with a secret, and links to it from inside."""
    folder = project.parent / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text(SECRET)
    return folder


@pytest.fixture
def trapped(project: Path, outside: Path) -> Path:
    """A project full of ways out."""
    (project / "src/sub").mkdir(parents=True)
    (project / "a.txt").write_text("inside\n")
    (project.parent / f"{project.name}-secret").mkdir()
    (project.parent / f"{project.name}-secret/x").write_text(SECRET)
    for name, target in {
        "link_folder": str(outside),
        "link_file": str(outside / "secret.txt"),
        "link_root": "/",
        "link_up": "..",
        "link_chain": "src/link_deep",
        "src/link_deep": "../../outside",
        "link_dangling": "nowhere",
        "link_loop": "link_loop",
    }.items():
        (project / name).symlink_to(target)
    return project


def descriptors() -> set[str]:
    return set(os.listdir("/dev/fd"))


@pytest.mark.requirement("s:S-10", "s:S-11", "s:S-12", "code:outside-root", "envelope:text")
@pytest.mark.parametrize("tool", ["LS", "Read"])
@pytest.mark.parametrize(("path", "expected"), HOSTILE, ids=[ascii(path[:40]) for path, _ in HOSTILE])
def test_a_hostile_path_is_refused(
    yard: BlockingYard, trapped: Path, outside: Path, tool: str, path: str, expected: ErrorCode
) -> None:
    asked = path.replace("{root}", str(trapped)).replace("{outside}", str(outside))
    envelope = yard.call(tool, {"path": asked})
    assert (code(envelope), SECRET in json.dumps(envelope.to_dict())) == (expected, False)
    assert envelope.error is not None
    assert envelope.text.startswith(envelope.error.message)
    assert len(envelope.text) > len(envelope.error.message), "the text says what to do next"


@pytest.mark.requirement("s:S-10", "envelope:data-paths")
@pytest.mark.parametrize("name", ODD_NAMES, ids=map(ascii, ODD_NAMES))
def test_a_legal_name_is_listed_and_read_whatever_it_looks_like(yard: BlockingYard, project: Path, name: str) -> None:
    (project / name).write_text("found\n")
    assert paths(yard.call("LS", {"include_hidden": True})) == [name]
    envelope = yard.call("Read", {"path": name})
    assert (envelope.data["content"], envelope.context["path_resolved"]) == ("1\tfound", name)


@pytest.mark.requirement("s:S-10")
@pytest.mark.parametrize("written", ["caf\u00e9/n\u00e4me", "cafe\u0301/na\u0308me", "caf\u00e9/na\u0308me"])
def test_a_path_is_found_in_whatever_unicode_form_it_is_written(
    yard: BlockingYard, project: Path, written: str
) -> None:
    (project / "cafe\u0301").mkdir()
    (project / "cafe\u0301/n\u00e4me").write_text("found\n")
    assert yard.call("Read", {"path": written}).data["content"] == "1\tfound"


@pytest.mark.requirement("s:S-10")
def test_a_name_that_is_there_exactly_as_written_wins(yard: BlockingYard, project: Path) -> None:
    for name in ("\u00e9", "e\u0301", "\\xe9"):
        (project / name).write_text(ascii(name))
    (project / os.fsdecode(b"\xe9")).write_text("the byte")
    contents = [yard.call("Read", {"path": name}).data["content"] for name in ("\u00e9", "e\u0301", "\\xe9")]
    assert contents == [f"1\t{name!a}" for name in ("\u00e9", "e\u0301", "\\xe9")]


@pytest.mark.requirement("envelope:data-paths", "s:S-10")
@pytest.mark.parametrize("name", [b"caf\xe9.txt", b"\xff\xfe", b"\xe9" * 255, b"\\xe9-\xe9", b"ok-\xf0\x9f\x98"])
def test_a_name_that_is_not_utf8_is_read_back_by_the_path_that_was_listed(
    yard: BlockingYard, project: Path, name: bytes
) -> None:
    folder = os.path.join(os.fsencode(project), b"\xfc")
    os.mkdir(folder)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(b"found\n")
    listed = entries(yard.call("LS", {"depth": 2}))
    assert [entry["type"] for entry in listed] == ["dir", "file"]
    envelope = yard.call("Read", {"path": listed[1]["path"]})
    assert (envelope.data["content"], envelope.context["path_resolved"]) == ("1\tfound", listed[1]["path"])
    assert entries(yard.call("LS", {"path": listed[0]["path"]})) == listed[1:]


@pytest.mark.requirement("s:S-11")
def test_paths_are_compared_by_components_and_not_by_letters(tmp_path: Path) -> None:
    for name in ("data", "data-secret", "dat"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text(name)
    workspace = Workspace(tmp_path / "data")
    try:
        with workspace.open_file(f"{tmp_path}/data/x") as file:
            assert os.pread(file.fd, 99, 0) == b"data"
        for name in ("data-secret", "dat", "DATA"):
            with pytest.raises(Failure) as failure, workspace.open_file(f"{tmp_path}/{name}/x"):
                pass
            assert failure.value.code is DENIED
    finally:
        workspace.close()


@pytest.mark.requirement("path:relative", "envelope:context:path-resolved")
@pytest.mark.parametrize(
    ("path", "resolved"),
    [
        ("src/main.py", "src/main.py"),
        ("./src/main.py", "src/main.py"),
        ("src/../src/main.py", "src/main.py"),
        ("src//main.py", "src/main.py"),
        ("src/./main.py", "src/main.py"),
        ("src/sub/../main.py", "src/main.py"),
    ],
)
def test_a_relative_path_counts_from_the_project_root(
    yard: BlockingYard, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, resolved: str
) -> None:
    put(project, {"src/main.py": "main\n", "src/sub/x": ""})
    monkeypatch.chdir(tmp_path)
    envelope = yard.call("Read", {"path": path})
    assert (envelope.data["content"], envelope.context["path_resolved"]) == ("1\tmain", resolved)


@pytest.mark.requirement("path:relative", "envelope:context:path-resolved")
@pytest.mark.parametrize("path", [".", "./", "./.", "src/..", "src/sub/../.."])
def test_the_root_itself_is_shown_as_a_dot(yard: BlockingYard, project: Path, path: str) -> None:
    (project / "src/sub").mkdir(parents=True)
    envelope = yard.call("LS", {"path": path})
    assert (code(envelope), envelope.context["path_resolved"]) == (None, ".")


@pytest.mark.requirement("path:absolute", "envelope:data-paths", "envelope:context:path-resolved")
def test_an_absolute_path_inside_the_root_is_accepted_and_shown_relative(yard: BlockingYard, project: Path) -> None:
    put(project, {"src/main.py": "main\n"})
    read = yard.call("Read", {"path": str(project / "src/main.py")})
    listed = yard.call("LS", {"path": str(project / "src")})
    root = yard.call("LS", {"path": str(project)})
    assert [e.context["path_resolved"] for e in (read, listed, root)] == ["src/main.py", "src", "."]
    assert paths(listed) + paths(root) == ["src/main.py", "src/"]


@pytest.mark.requirement("path:absolute")
def test_a_root_that_is_reached_through_a_link_is_known_by_both_names(tmp_path: Path) -> None:
    put(tmp_path / "real", {"a.txt": "found\n"})
    (tmp_path / "alias").symlink_to("real")
    with toolyard.open(project=tmp_path / "alias", home=tmp_path / "home") as yard:
        for root in ("alias", "real"):
            assert yard.call("Read", {"path": str(tmp_path / root / "a.txt")}).data["content"] == "1\tfound"


@pytest.mark.requirement("path:link-inside", "envelope:context:path-resolved")
@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        ("l", "real/a.txt", "l"),
        ("l", "real", "l/a.txt"),
        ("l", "./real/../real/", "l/a.txt"),
        ("real/l", "../real/a.txt", "real/l"),
        ("real/l", "..", "real/l/real/a.txt"),
        ("l", "{root}/real/a.txt", "l"),
        ("l", "{root}", "l/real/a.txt"),
        ("l", ".", "l/l/l/real/a.txt"),
        ("l", "real", "l/../real/a.txt"),
    ],
)
def test_a_link_inside_the_root_is_followed_and_stays_a_link(
    yard: BlockingYard, project: Path, link: str, target: str, path: str
) -> None:
    put(project, {"real/a.txt": "found\n"})
    (project / link).symlink_to(target.replace("{root}", str(project)))
    envelope = yard.call("Read", {"path": path})
    assert (envelope.data["content"], envelope.context["path_resolved"]) == ("1\tfound", "real/a.txt")
    assert (project / link).is_symlink()


@pytest.mark.requirement("path:link-inside", "s:S-12")
def test_a_chain_of_forty_links_is_followed_and_a_longer_one_is_refused(workspace: Workspace, project: Path) -> None:
    (project / "l0").write_text("found")
    for number in range(1, 42):
        (project / f"l{number}").symlink_to(f"l{number - 1}")
    with workspace.open_file("l40") as file:
        assert file.path == "l0"
    with pytest.raises(Failure, match="its links form a loop") as failure, workspace.open_file("l41"):
        pass
    assert failure.value.code is MISSING


@pytest.mark.requirement("s:S-12", "ls:types")
def test_links_are_listed_as_links_whatever_they_point_to(yard: BlockingYard, trapped: Path) -> None:
    links = [entry for entry in entries(yard.call("LS", {})) if entry["type"] == "link"]
    assert {entry["path"] for entry in links} == {path.name for path in trapped.iterdir() if path.is_symlink()}
    assert {tuple(entry) for entry in links} == {("path", "type", "mtime")}


SWAP = """
import os, sys
real, kept, target = sys.argv[1:]
give_way = getattr(os, "sched_yield", os.getpid)  # with one processor for both, the reader is to see either side
print("ready", flush=True)
while True:
    os.rename(real, kept)
    os.symlink(target, real)
    give_way()
    os.unlink(real)
    os.rename(kept, real)
    give_way()
"""


@contextmanager
def swapping(real: Path, target: Path) -> Iterator[None]:
    """Another process swaps ``real`` for a link to ``target`` and back, as fast as it can."""
    command = [sys.executable, "-c", SWAP, str(real), str(real.parents[1] / "kept"), str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as swapper:
        assert swapper.stdout is not None
        assert swapper.stdout.readline() == b"ready\n"
        try:
            yield
        finally:
            assert swapper.poll() is None, "it went on to the end"
            swapper.kill()


@pytest.mark.requirement("s:S-13")
@pytest.mark.parametrize(("swapped", "target"), [("d", "."), ("d/secret.txt", "secret.txt")])
def test_a_swap_for_a_link_never_lets_a_read_leave_the_root(
    yard: BlockingYard, project: Path, outside: Path, swapped: str, target: str
) -> None:
    put(project, {"d/secret.txt": "inside\n", "d/sub/x": ""})
    seen: Counter[str] = Counter()
    with swapping(project / swapped, outside / target):
        for _ in range(20_000):
            read = yard.call("Read", {"path": "d/secret.txt"})
            seen[str(read.data.get("content") or code(read))] += 1
            listed = yard.call("LS", {"path": "d", "depth": 2})
            assert SECRET not in json.dumps([read.to_dict(), listed.to_dict()])
            assert code(listed) in (None, DENIED, MISSING, ErrorCode.CONFLICT)
            if seen.total() >= RACES and min(seen["1\tinside"], seen[DENIED]) >= MET:
                break
    assert set(seen) <= {"1\tinside", DENIED, MISSING, ErrorCode.CONFLICT}
    assert min(seen["1\tinside"], seen[DENIED]) >= MET, f"both sides of the race were met: {seen}"


class Moment:
    """Makes a change between the look at a name and the step that follows it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: bytes, change: Callable[[], object]) -> None:
        look = PathWalk._read_mode
        self.met = False

        def look_and_change(walk: PathWalk, looked_at: bytes) -> int:
            mode = look(walk, looked_at)
            if looked_at == name and not self.met:
                self.met = True
                change()
            return mode

        monkeypatch.setattr(PathWalk, "_read_mode", look_and_change)


def swap_for_link(path: Path, target: Path) -> None:
    path.rename(path.parents[1] / "kept")
    path.symlink_to(target)


def swap_for_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.requirement("s:S-13")
def test_a_folder_swapped_just_after_the_look_is_looked_at_again(
    yard: BlockingYard, project: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(project, {"src/d/secret.txt": "inside\n"})
    moment = Moment(monkeypatch, b"d", lambda: swap_for_link(project / "src/d", outside))
    envelope = yard.call("Read", {"path": "src/d/secret.txt"})
    assert (moment.met, code(envelope), SECRET in str(envelope)) == (True, DENIED, False)


@pytest.mark.requirement("s:S-13")
@pytest.mark.parametrize(
    ("tool", "name", "target", "expected"),
    [("Read", "secret.txt", "secret.txt", ErrorCode.CONFLICT), ("LS", "d", ".", MISSING)],
)
def test_the_last_name_swapped_just_after_the_look_is_not_followed(
    yard: BlockingYard,
    project: Path,
    outside: Path,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    name: str,
    target: str,
    expected: ErrorCode,
) -> None:
    put(project, {"src/secret.txt": "inside\n", "src/d/x": ""})
    moment = Moment(monkeypatch, name.encode(), lambda: swap_for_link(project / "src" / name, outside / target))
    envelope = yard.call(tool, {"path": f"src/{name}"})
    assert (moment.met, code(envelope), SECRET in str(envelope)) == (True, expected, False)


@pytest.mark.requirement("s:S-13", "s:S-16")
def test_a_file_swapped_for_a_pipe_just_after_the_look_does_not_block(
    yard: BlockingYard, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(project, {"a.txt": "inside\n"})
    moment = Moment(monkeypatch, b"a.txt", lambda: swap_for_fifo(project / "a.txt"))
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(lambda: yard.call("Read", {"path": "a.txt"}))
        try:
            envelope = reading.result(WAIT_S)
        finally:
            os.close(os.open(project / "a.txt", os.O_RDWR))  # lets a reader go that waits for a writer
    assert (moment.met, code(envelope)) == (True, INVALID)


@pytest.mark.requirement("s:S-13", "path:link-inside")
def test_a_link_swapped_for_a_folder_just_after_the_look_is_looked_at_again(
    yard: BlockingYard, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(project, {"real/a.txt": "found\n", "l": {"symlink": "elsewhere"}})

    def swap() -> None:
        (project / "l").unlink()
        (project / "real").rename(project / "l")

    moment = Moment(monkeypatch, b"l", swap)
    envelope = yard.call("Read", {"path": "l/a.txt"})
    assert (moment.met, envelope.data.get("content")) == (True, "1\tfound")


@pytest.mark.requirement("s:S-14")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_hard_link_to_the_file_of_another_user_is_refused(yard: BlockingYard, project: Path, outside: Path) -> None:
    secret = outside / "secret.txt"
    os.chown(secret, NOBODY, NOBODY)
    (project / "hard").hardlink_to(secret)
    envelope = yard.call("Read", {"path": "hard"})
    assert (code(envelope), SECRET in json.dumps(envelope.to_dict())) == (DENIED, False)


@pytest.mark.requirement("s:S-14")
def test_a_hard_link_to_a_file_of_the_owner_is_read(yard: BlockingYard, project: Path) -> None:
    put(project, {"a.txt": "mine\n"})
    (project / "b.txt").hardlink_to(project / "a.txt")
    assert yard.call("Read", {"path": "b.txt"}).data["content"] == "1\tmine"


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(f"/dev/fd/{folder}/{path.name}" if os.path.isdir(f"/dev/fd/{folder}") else str(path))
    os.close(folder)


def make_device(path: Path) -> None:
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero, which never ends
    except PermissionError:
        pytest.skip("this user cannot make devices")


@pytest.mark.requirement("s:S-16")
@pytest.mark.parametrize("make", [make_fifo, make_socket, make_device])
@pytest.mark.parametrize("through", ["special", "link"])
def test_a_special_file_is_refused_without_blocking(yard: BlockingYard, project: Path, make: Any, through: str) -> None:
    make(project / "special")
    (project / "link").symlink_to("special")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(lambda: yard.call("Read", {"path": through})).result(WAIT_S)
        listed = pool.submit(lambda: yard.call("LS", {"path": through})).result(WAIT_S)
    assert (code(read), code(listed)) == (INVALID, INVALID)
    assert read.error is not None
    assert read.error.message == f"'{through}' is not a regular file: devices, pipes and sockets are not read."


@pytest.mark.requirement("code:missing-path", "envelope:text")
@pytest.mark.parametrize("tool", ["LS", "Read"])
def test_a_missing_path_is_not_found_and_a_neighbour_is_suggested(yard: BlockingYard, project: Path, tool: str) -> None:
    put(project, {"src/main.py": "x", "src/other.txt": ""})
    envelope = yard.call(tool, {"path": "src/mian.py"})
    assert envelope.to_dict()["error"] == {
        "code": "NOT_FOUND",
        "message": "'src/mian.py' does not exist. Did you mean 'src/main.py'?",
    }
    assert envelope.text.endswith("Check the path, or list its folder with LS.")


@pytest.mark.requirement("code:missing-path")
def test_nothing_is_suggested_when_nothing_is_near(yard: BlockingYard, project: Path) -> None:
    put(project, {"main.py": "x"})
    assert yard.call("Read", {"path": "q"}).text == "'q' does not exist. Check the path, or list its folder with LS."


@pytest.mark.requirement("code:os-refusal", "envelope:text")
def test_a_refusal_by_the_operating_system_is_permission_denied() -> None:
    with shared_project() as project:
        put(project, {"closed.txt": SECRET, "folder/a.txt": SECRET, "entry/a.txt": "open\n"})
        (project / "closed.txt").chmod(0)
        (project / "folder").chmod(0)
        (project / "entry").chmod(0o111)  # may be passed, not listed
        answers = call_as_nobody(
            project,
            ("Read", {"path": "closed.txt"}),
            ("Read", {"path": "folder/a.txt"}),
            ("LS", {"path": "folder"}),
            ("LS", {"path": "entry"}),
            ("Read", {"path": "entry/a.txt"}),
            ("Read", {"path": "entry/b.txt"}),
        )
    codes = [answer.get("error", {}).get("code") for answer in answers]
    assert codes == ["PERMISSION_DENIED"] * 4 + [None, "NOT_FOUND"]
    assert answers[0]["text"] == (
        "The operating system refuses access to 'closed.txt': Permission denied."
        " Change the file's permissions, or run Toolyard as a user who may."
    )
    assert answers[4]["data"]["content"] == "1\topen"
    assert SECRET not in json.dumps(answers)


@contextmanager
def no_more_descriptors() -> Iterator[None]:
    """The next file that is opened is one too many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open("/", os.O_RDONLY)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.requirement("code:io-fault")
@pytest.mark.parametrize("path", ["a.txt", "src/a.txt"])
def test_any_other_fault_of_the_system_is_an_execution_error(workspace: Workspace, project: Path, path: str) -> None:
    put(project, {"a.txt": "x", "src/a.txt": "x"})
    with no_more_descriptors(), pytest.raises(Failure) as failure, workspace.open_file(path):
        pass
    assert (failure.value.code, failure.value.message) == (
        ErrorCode.EXECUTION_ERROR,
        f"'{path}': Too many open files.",
    )


@pytest.mark.requirement("code:io-fault")
def test_a_fault_while_the_file_is_read_is_an_execution_error(tmp_path: Path) -> None:
    speed = Path("/sys/class/net/lo/speed")  # a regular file whose driver refuses to be read
    try:
        speed.read_bytes()
    except OSError as error:
        if error.errno != errno.EINVAL:
            pytest.skip(f"this system has no file that cannot be read: {error}")
    else:
        pytest.skip("this system can read the speed of the loopback interface")
    with toolyard.open(project=speed.parent, home=tmp_path / "home") as yard:
        envelope = yard.call("Read", {"path": "speed"})
    assert envelope.to_dict()["error"] == {
        "code": "EXECUTION_ERROR",
        "message": "'speed': Invalid argument.",
    }


@pytest.mark.requirement("code:io-fault", "code:os-refusal", "code:missing-path")
@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOENT, ErrorCode.NOT_FOUND),
        (errno.ENOTDIR, ErrorCode.NOT_FOUND),
        (errno.EACCES, ErrorCode.PERMISSION_DENIED),
        (errno.EPERM, ErrorCode.PERMISSION_DENIED),
        (errno.EROFS, ErrorCode.PERMISSION_DENIED),
        (errno.ENAMETOOLONG, ErrorCode.INVALID_PARAM),
        (errno.EISDIR, ErrorCode.IS_DIRECTORY),
        (errno.ELOOP, ErrorCode.CONFLICT),
        (errno.ENOSPC, ErrorCode.EXECUTION_ERROR),
        (errno.EDQUOT, ErrorCode.EXECUTION_ERROR),
        (errno.EIO, ErrorCode.EXECUTION_ERROR),
        (errno.ESTALE, ErrorCode.EXECUTION_ERROR),
        (errno.EMFILE, ErrorCode.EXECUTION_ERROR),
    ],
)
def test_every_errno_has_its_code_a_message_and_a_next_step(number: int, expected: ErrorCode) -> None:
    failure = to_failure(OSError(number, os.strerror(number)), "some/path")
    assert (failure.code, "some/path" in failure.message, bool(failure.hint)) == (expected, True, True)


@pytest.mark.requirement("s:S-16", "s:S-10")
def test_no_call_leaves_a_descriptor_open(yard: BlockingYard, trapped: Path) -> None:
    os.mkfifo(trapped / "fifo")
    (trapped / "src/.gitignore").mkdir()
    put(trapped, {"nb.ipynb": '{"cells": [', "b.bin": "\0", "broken.pdf": "%PDF-1.4"})
    paths = [path for path, _ in HOSTILE[:60]]
    paths += ["fifo", "src", "a.txt", "nb.ipynb", "b.bin", "broken.pdf", "src/sub", "missing"]

    def everything() -> None:
        for path in paths:
            yard.call("Read", {"path": path})
            yard.call("LS", {"path": path, "depth": 3, "include_hidden": True})
            yard.call("Read", {"path": path, "encoding": "nonsense"})
            yard.call("Read", {"path": path, "start_line": 99})

    everything()
    before = descriptors()
    for _ in range(3):
        everything()
    assert descriptors() <= before


@pytest.mark.requirement("s:S-16")
def test_a_very_long_path_takes_no_longer_per_step(workspace: Workspace, project: Path) -> None:
    put(project, {"a/x": "found"})
    with workspace.open_file("a/../" * 20_000 + "./" * 200_000 + "a/x" + "/." * 200_000) as file:
        assert file.path == "a/x"


READS = [  # those of the shared scenarios whose first step is a read, in our own form
    ("fs-005", {"a.txt": {"b64": "77u/b25lCg=="}}, "a.txt", {"content": "1\tone"}),
    ("fs-007", {"a.txt": {"b64": "77u/b25lCg=="}}, "a.txt", {"content": "1\tone"}),
    ("fs-008", {"a.txt": "a \ufffd b\n"}, "a.txt", {"content": "1\ta \ufffd b", "status": "success"}),
    ("fs-009", {"a.txt": {"b64": "b2sK5Lg="}}, "a.txt", {"content": "1\tok\n2\t\\xe4\\xb8", "status": "partial"}),
    ("fs-012", {"a.txt": "a\r\nb\nc\r\n"}, "a.txt", {"content": "1\ta\n2\tb\n3\tc", "eol": "mixed"}),
    ("fs-013", {"a.txt": "a\nb\nc\r\n"}, "a.txt", {"content": "1\ta\n2\tb\n3\tc", "eol": "mixed"}),
    ("fs-017", {"a.txt": "a\r\nb"}, "a.txt", {"content": "1\ta\n2\tb", "eol": "crlf"}),
    ("fs-028", {"r": "a\n", "l1": {"symlink": "r"}, "l2": {"symlink": "l1"}}, "l2", {"content": "1\ta"}),
    ("fs-029", {"ln": {"symlink": "/etc/passwd"}}, "ln", {"code": "ACCESS_DENIED"}),
    ("fs-034", {}, "../x", {"code": "ACCESS_DENIED"}),
    ("fs-038", {}, "", {"code": "INVALID_PARAM"}),
    ("fs-040", {}, "./", {"code": "IS_DIRECTORY"}),
    ("fs-046", {"[...slug].tsx": "a\n"}, "[...slug].tsx", {"content": "1\ta"}),
    ("fs-047", {"a&b;c.txt": "a\n"}, "a&b;c.txt", {"content": "1\ta"}),
    ("fs-049", {"名前.txt": "a\n"}, "名前.txt", {"content": "1\ta"}),
    ("fs-053", {"$HOME.txt": "a\n"}, "$HOME.txt", {"content": "1\ta"}),
    ("fs-064", {"main.py": "x"}, "mian.py", {"code": "NOT_FOUND"}),
    ("fs-079", {"a.txt": "x\ny\n"}, "a.txt", {"content": "1\tx\n2\ty", "total_lines": 2}),
    ("fs-083", {"a.txt": "a\fb\nc\n"}, "a.txt", {"content": "1\ta\fb\n2\tc", "total_lines": 2}),
    ("fs-085", {"a.txt": "a\x85b\nc\n"}, "a.txt", {"content": "1\ta\x85b\n2\tc", "total_lines": 2}),
    ("fs-087", {"a.txt": "a\u2029b\nc\n"}, "a.txt", {"content": "1\ta\u2029b\n2\tc", "total_lines": 2}),
    ("fs-089", {"a.txt": {"lines": 3000, "of": "l{n}"}}, "a.txt", {"next_line": 2001, "status": "partial"}),
    ("fs-097", {"a.txt": {"b64": "iVBORw0KGgoAAAAAAAAAAAAAAAAAAAAAAAAAAA=="}}, "a.txt", {"mime": "image/png"}),
    ("fs-099", {"a.c": "\f\n\x1b[31mred\n"}, "a.c", {"content": "1\t\f\n2\t\x1b[31mred", "status": "success"}),
]


@pytest.mark.requirement("read:content", "read:encoding", "s:S-10", "s:S-12", "code:missing-path", "path:link-inside")
@pytest.mark.parametrize(("files", "path", "expected"), [case[1:] for case in READS], ids=[case[0] for case in READS])
def test_a_scenario_of_files_reads_as_it_should(
    yard: BlockingYard, project: Path, files: dict[str, Any], path: str, expected: dict[str, Any]
) -> None:
    put(project, files)
    envelope = yard.call("Read", {"path": path})
    found = {**envelope.data, "status": envelope.status.value, "code": code(envelope)}
    assert {key: found.get(key) for key in expected} == expected


@pytest.mark.requirement("read:content", "s:S-10", "s:S-12", "code:missing-path")
def test_the_shared_scenarios_that_begin_with_a_read_end_as_expected(tmp_path: Path) -> None:
    cases = [case for case in vectors("fs_scenarios.json")["cases"] if case["steps"][0].get("tool") == "read"]
    assert cases
    for case in cases:
        project = tmp_path / case["id"]
        project.mkdir()
        put(project, case["setup"])
        with toolyard.open(project=project, home=tmp_path / "home") as yard:
            envelope = yard.call("Read", {"path": case["steps"][0]["path"]})
        if len(case["steps"]) == 1:
            _require_expected(case["id"], envelope, case["expect"])
        else:  # the read comes before an edit, and must at least succeed
            assert envelope.error is None, case["id"]


def _require_expected(name: str, envelope: Envelope, expect: dict[str, Any]) -> None:
    alternatives = expect.get("any_of", [expect])
    outcome = "error" if envelope.error else "partial" if envelope.status == "partial" else "ok"
    wanted = next((one for one in alternatives if one["outcome"] == outcome), None)
    assert wanted is not None, (name, outcome, envelope.text)
    content = str(envelope.data.get("content", ""))
    lines = [line.partition("\t")[2] for line in content.split("\n")]
    assert wanted.get("code", code(envelope)) == code(envelope), name
    assert wanted.get("lines", lines) == lines, name
    assert wanted.get("total_lines", envelope.data.get("total_lines")) == envelope.data.get("total_lines"), name
    assert wanted.get("text_mentions", "") in envelope.text, name
    assert wanted.get("content_not_contains", "\0") not in content, name
