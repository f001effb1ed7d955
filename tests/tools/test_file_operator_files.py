"""FileOperator: lists, copies, moves, the trash and the web (vcp D2, D3, D7, D10 and C16 are not ours)."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tools.media import PNG
from tests.tools.operating import Operator, data, error_of, list_project, open_operator
from tests.workspace.test_arranger import tree
from tests.workspace.vectors import put
from tests.workspace.web import Reply, Web, serving
from toolyard.protocol.envelope import Status
from toolyard.tools.operations.listing import MAX_ITEMS, MAX_RESULTS

WHEN = 1_700_000_000
ISO = "2023-11-14T22:13:20+00:00"


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as running:
        yield running


def names(listed: list[dict[str, Any]]) -> list[str]:
    return [item["path"] for item in listed]


# --- Lists ---


@pytest.mark.requirement("fileoperator:lists")
async def test_a_directory_is_a_summary_and_its_items(project: Path, op: Operator) -> None:
    put(project, {"d/b.txt": "x" * 1536, "d/sub/x": "", "d/.hidden": "", "d/link": {"symlink": "b.txt"}})
    (project / "d/b.txt").chmod(0o640)
    for path in (project / "d").iterdir():
        os.utime(path, (WHEN, WHEN), follow_symlinks=False)
    envelope = await op("ListDirectory", directoryPath="d")
    [folder, file, link] = data(envelope)["items"]
    assert file == {
        "name": "b.txt",
        "path": "d/b.txt",
        "type": "file",
        "size": 1536,
        "sizeFormatted": "1.5 KB",
        "lastModified": ISO,
        "permissions": 0o100640,
        "isHidden": False,
    }
    assert [(item["name"], item["type"], item["size"]) for item in (folder, link)] == [
        ("sub", "directory", None),
        ("link", "link", None),
    ]
    assert (envelope.status, envelope.data["totalItems"], envelope.data["truncated"]) == (Status.SUCCESS, 3, False)
    summary, listing = await op.texts(command="ListDirectory", directoryPath="d")
    assert summary == "Directory listing of 'd' (3 items). Not listed: 1 hidden (showHidden)."
    assert json.loads(listing) == envelope.data["items"]


@pytest.mark.requirement("fileoperator:lists")
@pytest.mark.parametrize(
    ("hidden", "found"),
    [("false", ["a"]), (False, ["a"]), ("no", ["a"]), ("true", [".x", "a"]), (True, [".x", "a"]), (None, ["a"])],
)
async def test_show_hidden_false_means_false(project: Path, op: Operator, hidden: Any, found: list[str]) -> None:
    """D2: VCP takes the text "false" for true."""
    put(project, {"a": "", ".x": ""})
    more = {} if hidden is None else {"showHidden": hidden}
    assert names(data(await op("ListDirectory", directoryPath=".", **more))["items"]) == found


@pytest.mark.requirement("fileoperator:lists", "envelope:status:truncated")
async def test_a_large_directory_is_partial_with_its_total(project: Path, op: Operator) -> None:
    for number in range(MAX_ITEMS + 5):
        (project / f"{number:04}").touch()
    envelope = await op("ListDirectory", directoryPath=".")
    assert (envelope.status, envelope.data["totalItems"], envelope.data["truncated"]) == (
        Status.PARTIAL,
        MAX_ITEMS + 5,
        True,
    )
    assert len(data(envelope)["items"]) == MAX_ITEMS


@pytest.mark.requirement("fileoperator:lists")
async def test_file_info_tells_about_files_folders_and_links(project: Path, op: Operator) -> None:
    put(project, {"d/a.tar.gz": "12345", "l": {"symlink": "d/a.tar.gz"}})
    os.utime(project / "d/a.tar.gz", (WHEN, WHEN))
    (project / "d/a.tar.gz").chmod(0o644)
    envelope = await op("FileInfo", filePath="l")
    info = data(envelope)["info"]
    assert info == {
        "name": "a.tar.gz",
        "path": "d/a.tar.gz",
        "directory": "d",
        "extension": ".gz",
        "type": "file",
        "size": 5,
        "sizeFormatted": "5 Bytes",
        "lastModified": ISO,
        "lastAccessed": ISO,
        "created": info["created"],
        "permissions": 0o100644,
        "mode": "-rw-r--r--",
        "isDirectory": False,
        "isFile": True,
        "isSymbolicLink": True,
    }
    folder = data(await op("FileInfo", filePath="d"))["info"]
    assert (folder["type"], folder["isDirectory"], folder["size"]) == ("directory", True, None)
    assert data(await op("FileInfo", filePath="."))["info"]["path"] == "."
    assert error_of(await op("FileInfo", filePath="missing"))[0] == "NOT_FOUND"
    summary, listing = await op.texts(command="FileInfo", filePath="l")
    assert (summary, json.loads(listing)) == (envelope.text, info)


SEARCHED = {
    "a.txt": "",
    "B.TXT": "",
    "sub/c.txt": "",
    "sub/deep/d.txt": "",
    "sub/notes.txt/x": "",
    ".hid/e.txt": "",
    "sub/.f.txt": "",
    "build/g.txt": "",
    ".gitignore": "build/\n",
    "tool-output/h.txt": "",
}


@pytest.mark.requirement("fileoperator:lists")
@pytest.mark.parametrize(
    ("pattern", "options", "found"),
    [
        ("*.txt", None, ["B.TXT", "a.txt", "sub/c.txt", "sub/deep/d.txt", "sub/notes.txt"]),
        ("*.txt", '{"caseSensitive": true, "fileType": "file"}', ["a.txt", "sub/c.txt", "sub/deep/d.txt"]),
        ("*.txt", {"fileType": "directory"}, ["sub/notes.txt"]),
        ("?.txt", '{"includeHidden": "false", "fileType": "file"}', ["B.TXT", "a.txt", "sub/c.txt", "sub/deep/d.txt"]),
        ("[ef].txt", {"includeHidden": True}, [".hid/e.txt"]),
        (".*.txt", "", ["sub/.f.txt"]),
        (".hid/*.txt", None, [".hid/e.txt"]),
        (".HID/*.txt", None, [".hid/e.txt"]),
        (".HID/*.txt", {"caseSensitive": True}, []),
        ("[gh].txt", {"includeIgnored": True}, ["build/g.txt"]),
        ("deep/*.txt", None, ["sub/deep/d.txt"]),
        ("sub/**/*.txt", None, ["sub/c.txt", "sub/deep/d.txt", "sub/notes.txt"]),
        ("{a,c}.txt", None, []),
    ],
)
async def test_a_search_honours_its_options(
    project: Path, op: Operator, pattern: str, options: Any, found: list[str]
) -> None:
    """D3: VCP ignores options that are a JSON text, as its own manual asks for."""
    put(project, SEARCHED)
    more = {} if options is None else {"options": options}
    envelope = await op("SearchFiles", searchPath=".", pattern=pattern, **more)
    assert names(data(envelope)["results"]) == found
    assert (envelope.data["totalResults"], envelope.data["truncated"]) == (len(found), False)


@pytest.mark.requirement("fileoperator:lists")
async def test_a_result_tells_where_it_is_from_both_ends(project: Path, op: Operator) -> None:
    put(project, SEARCHED)
    os.utime(project / "sub/deep/d.txt", (WHEN, WHEN))
    texts = await op.texts(command="SearchFiles", searchPath="sub", pattern="d.*")
    assert texts[0].startswith("Search results for 'd.*' in 'sub' (1 of 1).")
    assert json.loads(texts[1]) == [
        {
            "name": "d.txt",
            "path": "sub/deep/d.txt",
            "directory": "sub/deep",
            "relativePath": "deep/d.txt",
            "type": "file",
            "size": 0,
            "sizeFormatted": "0 Bytes",
            "lastModified": ISO,
        }
    ]


@pytest.mark.requirement("fileoperator:lists")
@pytest.mark.parametrize(
    "options", ["not json", "[1]", {"caseSensitive": "maybe"}, {"fileType": "socket"}, {"depth": 3}, '{"a": ']
)
async def test_options_that_mean_nothing_are_refused(op: Operator, options: Any) -> None:
    envelope = await op("SearchFiles", searchPath=".", pattern="*", options=options)
    assert error_of(envelope)[0] == "INVALID_PARAM"
    assert "options" in envelope.text


@pytest.mark.requirement("s:S-18", "fileoperator:lists")
async def test_a_search_that_finds_nothing_says_what_is_special_in_its_pattern(project: Path, op: Operator) -> None:
    put(project, {"a.txt": "", "{b}.txt": ""})
    assert "Braces" in (await op("SearchFiles", searchPath=".", pattern="{a,c}.txt")).text
    assert "Braces" not in (await op("SearchFiles", searchPath=".", pattern="{b}.txt")).text
    for pattern in ("[a.txt", "a.txt\\"):
        envelope = await op("SearchFiles", searchPath=".", pattern=pattern)
        assert error_of(envelope)[0] == "INVALID_PARAM"
        assert "not complete" in envelope.text


@pytest.mark.requirement("s:S-18", "s:S-12", "fileoperator:lists")
async def test_a_search_never_leaves_its_folder(project: Path, op: Operator, tmp_path: Path) -> None:
    """C16: VCP joins ``../../`` to the path and follows links."""
    put(tmp_path, {"outside/secret.pem": "s"})
    put(project, {"sub/a.pem": "", "other.pem": "", "sub/link": {"symlink": str(tmp_path / "outside")}})
    for pattern in ("../../**/*.pem", "..", "/etc/*", "a/../*.pem", "..\\*.pem"):
        assert error_of(await op("SearchFiles", searchPath="sub", pattern=pattern))[0] == "INVALID_PARAM"
    assert names(data(await op("SearchFiles", searchPath="sub", pattern="*.pem"))["results"]) == ["sub/a.pem"]


@pytest.mark.requirement("fileoperator:lists", "envelope:status:truncated")
async def test_a_search_with_many_results_is_partial_with_its_total(project: Path, op: Operator) -> None:
    put(project, {f"{number:03}.txt": "" for number in range(MAX_RESULTS + 1)})
    envelope = await op("SearchFiles", searchPath=".", pattern="*.txt")
    assert (envelope.status, len(data(envelope)["results"]), envelope.data["totalResults"]) == (
        Status.PARTIAL,
        MAX_RESULTS,
        MAX_RESULTS + 1,
    )


@pytest.mark.requirement("fileoperator:folders")
async def test_the_allowed_directory_is_the_project(project: Path, op: Operator) -> None:
    put(project, {"a.txt": "", "sub/x": "", ".hidden": ""})
    envelope = await op("ListAllowedDirectories")
    assert data(envelope) == {
        "allowedRoots": {".": [{"name": "sub", "type": "directory"}, {"name": "a.txt", "type": "file"}]}
    }
    assert str(project) not in envelope.text


@pytest.mark.requirement("fileoperator:folders")
async def test_a_directory_is_created_with_its_parents(project: Path, op: Operator) -> None:
    assert (await op("CreateDirectory", directoryPath="a/b/c")).text == "Created the folder 'a/b/c'."
    again = await op("CreateDirectory", directoryPath="a/b/c")
    assert (again.status, again.data["created"], (project / "a/b/c").is_dir()) == (Status.SUCCESS, False, True)


# --- Arranging ---


@pytest.mark.requirement("fileoperator:copy-move")
async def test_copy_and_move_pick_a_free_name_and_rename_refuses(project: Path, op: Operator) -> None:
    put(project, {"a.txt": "a", "b.txt": "b"})
    copied = await op("CopyFile", sourcePath="a.txt", destinationPath="b.txt")
    moved = await op("MoveFile", sourcePath="a.txt", destinationPath="b.txt")
    renamed = await op("RenameFile", sourcePath="b.txt", destinationPath="b(1).txt")
    assert (copied.text, copied.data["renamed"]) == (
        "Copied 'a.txt' to 'b(1).txt'. The name 'b.txt' was taken.",
        True,
    )
    assert (moved.data["path"], error_of(renamed)) == ("b(2).txt", ("CONFLICT", "ALREADY_EXISTS"))
    assert tree(project) == {"b.txt": "b", "b(1).txt": "a", "b(2).txt": "a"}
    assert (await op("RenameFile", sourcePath="b.txt", destinationPath="c.txt")).text == "Renamed 'b.txt' to 'c.txt'."


@pytest.mark.requirement("fileoperator:delete")
async def test_what_is_deleted_comes_back(project: Path, op: Operator) -> None:
    put(project, {"a.txt": "a", "d/x/y": "y"})
    file = await op("DeleteFile", filePath="a.txt")
    folder = await op("DeleteFile", filePath="d")
    assert list_project(project) == []
    assert file.text == f"Deleted 'a.txt'. It is kept for 30 days in the trash as {file.data['trash_id']}."
    for envelope in (file, folder):
        op.trash.restore(str(envelope.data["trash_id"]), lambda: None)
    assert tree(project) == {"a.txt": "a", "d/x/y": "y"}
    assert error_of(await op("DeleteFile", filePath="missing"))[0] == "NOT_FOUND"


# --- Fetching ---


@pytest.mark.requirement("fileoperator:fetch")
async def test_a_download_is_done_when_its_bytes_are_there(project: Path, op: Operator, web: Web) -> None:
    """D7, D10: VCP says success before the download has begun."""
    web.replies["/dir/data%20set.bin?v=2"] = Reply(PNG * 100)
    envelope = await op("DownloadFile", url=web.url("/dir/data%20set.bin?v=2"))
    assert data(envelope) == {
        "applied": True,
        "path": "downloads/data_set.bin",
        "originalPath": "downloads/data_set.bin",
        "renamed": False,
        "size": len(PNG) * 100,
        "sourceUrl": web.url("/dir/data%20set.bin?v=2"),
        "mime": "",
    }
    assert (project / "downloads/data_set.bin").read_bytes() == PNG * 100


@pytest.mark.requirement("fileoperator:fetch")
async def test_a_download_goes_where_it_is_told_and_replaces_nothing(project: Path, op: Operator, web: Web) -> None:
    put(project, {"in/a.txt": "old"})
    web.replies["/x"] = Reply(b"new")
    assert data(await op("DownloadFile", url=web.url("/x"), downloadDir="", fileName=""))["path"] == "downloads/x"
    envelope = await op("DownloadFile", url=web.url("/x"), downloadDir="in", fileName="a.txt")
    assert (envelope.data["path"], envelope.data["renamed"]) == ("in/a(1).txt", True)
    assert tree(project) == {"in/a.txt": "old", "in/a(1).txt": "new", "downloads/x": "new"}


@pytest.mark.requirement("fileoperator:fetch")
@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/..%2f..%2fetc%2fpasswd", "_.._etc_passwd"),
        ("/%2e%2e", "download"),
        ("/", "download"),
        ("/a/b/", "b"),
        ("/.bashrc", "bashrc"),
        ("/x%00y%0a%e2%80%ae.txt", "x_y__.txt"),
        ("/" + "n" * 300 + ".txt", "n" * 196 + ".txt"),
        ("/%E4%BD%A0%E5%A5%BD.md", "你好.md"),
    ],
)
async def test_a_name_from_a_url_is_one_harmless_name(
    project: Path, op: Operator, web: Web, path: str, name: str
) -> None:
    web.replies[path] = Reply(b"x")
    assert data(await op("DownloadFile", url=web.url(path)))["path"] == f"downloads/{name}"


@pytest.mark.requirement("fileoperator:fetch")
async def test_a_download_that_fails_is_an_error_and_leaves_nothing(project: Path, op: Operator, web: Web) -> None:
    """D7: VCP reports success for a refused connection."""
    web.replies["/part"] = Reply(b"part", declared=100)
    web.replies["/large"] = Reply(b"x" * 100_001)
    gone = Web(1).url("/x")
    found = [error_of(await op("DownloadFile", url=url))[0] for url in (gone, web.url("/404"), web.url("/part"))]
    assert found == ["EXECUTION_ERROR", "NOT_FOUND", "EXECUTION_ERROR"]
    assert error_of(await op("DownloadFile", url=web.url("/large"))) == ("INVALID_PARAM", "TOO_LARGE")
    for name in ("../x", "a/b", "..", ".", "a\\b", " "):
        assert error_of(await op("DownloadFile", url=web.url("/x"), fileName=name))[0] == "INVALID_PARAM"
    assert error_of(await op("DownloadFile", url=web.url("/x"), downloadDir="../out"))[0] in (
        "ACCESS_DENIED",
        "NOT_FOUND",
    )
    assert list_project(project) == []


@pytest.mark.requirement("fileoperator:fetch")
@pytest.mark.parametrize("command", ["DownloadFile", "WebReadFile"])
async def test_a_fetch_that_does_not_end_is_an_error_at_its_time_limit(
    project: Path, tmp_path: Path, web: Web, command: str
) -> None:
    """D10: VCP's host kills the download at its own limit, after it was called a success."""
    web.replies["/slow"] = Reply(b"part", declared=100, hangs="body")
    with open_operator(project, tmp_path / "home", max_s=0.2) as op:
        assert error_of(await op(command, url=web.url("/slow")))[0] == "TIMEOUT"
    assert list_project(project) == []


@pytest.mark.requirement("fileoperator:fetch", "s:S-70")
@pytest.mark.parametrize("command", ["DownloadFile", "WebReadFile"])
@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://10.0.0.1/x", "ACCESS_DENIED"),
        ("http://169.254.169.254/", "ACCESS_DENIED"),
        ("file:///etc/passwd", "INVALID_PARAM"),
        ("http://u:p@files.example/", "INVALID_PARAM"),
    ],
)
async def test_inside_addresses_are_not_fetched(project: Path, op: Operator, command: str, url: str, code: str) -> None:
    """C16: VCP fetches from internal hosts."""
    assert error_of(await op(command, url=url))[0] == code
    assert list_project(project) == []


@pytest.mark.requirement("fileoperator:fetch")
@pytest.mark.parametrize("name", ["url", "filePath"])
async def test_a_web_file_is_read_like_a_file_and_not_kept(project: Path, op: Operator, web: Web, name: str) -> None:
    web.replies["/notes.txt"] = Reply(b"one\ntwo\nthree\n")
    web.replies["/a"] = Reply(PNG)
    envelope = await op("WebReadFile", **{name: web.url("/notes.txt")}, lines="2-3")
    assert data(envelope)["content"] == "two\nthree"
    assert (envelope.data["originalUrl"], envelope.data["fileName"]) == (web.url("/notes.txt"), "notes.txt")
    assert envelope.text == "Fetched from 'files.example'. Read 'notes.txt' (14 Bytes). Lines 2-3 of 3."
    media = (await op.vcp(command="WebReadFile", url=web.url("/a")))["result"]["content"]
    assert media[0]["text"].startswith("Fetched from 'files.example'.")
    assert media[1]["image_url"]["url"].startswith("data:image/png;base64,")
    assert list_project(project) == []
