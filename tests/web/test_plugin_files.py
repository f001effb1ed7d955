"""The files of a plugin for its review: what they hold, and what is different from the version that was allowed."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.folders import make_plugin
from tests.web.conftest import RunningServer, run_server
from tests.web.test_plugins import CANARY, upload, zip_folder
from toolyard.plugins.package.trust import MAX_FILE_BYTES, ReviewedFiles

BINARY = b"\x7fELF\x00\x01"


async def list_files(running: RunningServer, place: str) -> dict[str, Any]:
    rows = (await running.get(f"{place}/files")).json["data"]
    return {row["path"]: (row["kind"], row["counts"], row["change"]) for row in rows}


async def allow(running: RunningServer, name: str) -> None:
    review = (await running.get(f"/v1/plugins/{name}")).json["review"]
    await running.post(f"/v1/plugins/{name}/allow", {"fingerprint": review["fingerprint"]})


@pytest.mark.requirement("review:files")
async def test_the_files_are_listed_and_read_but_no_settings_and_nothing_outside(tmp_path: Path) -> None:
    folder = make_plugin(tmp_path / "home" / "plugins", "Strange", config=f"API_KEY={CANARY}\n")
    (folder / "main.py").write_text(f"key = '{CANARY}'\n\u202eevil\n")
    (folder / "helper.so").write_bytes(BINARY)
    (folder / "long.txt").write_text("x" * (MAX_FILE_BYTES + 1))
    (folder / "out.txt").symlink_to("/etc/hostname")
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "dependency.js").write_text("1\n")
    async with run_server(tmp_path) as running:
        assert await list_files(running, "/v1/plugins/Strange") == {
            "plugin-manifest.json": ("text", True, "none"),
            "main.py": ("text", True, "none"),
            "helper.so": ("binary", True, "none"),
            "long.txt": ("large", False, "none"),
            "out.txt": ("link", False, "none"),
        }
        main = await running.get("/v1/plugins/Strange/file?path=main.py")
        binary = (await running.get("/v1/plugins/Strange/file?path=helper.so")).json
        long = (await running.get("/v1/plugins/Strange/file?path=long.txt")).json
        link = (await running.get("/v1/plugins/Strange/file?path=out.txt")).json
        refused = [
            (await running.get(f"/v1/plugins/Strange/file?path={path}")).status
            for path in ("config.env", "../../key", "/etc/passwd", "node_modules/dependency.js", "none.py")
        ]
    assert (main.json["text"], main.json["structured_patch"]) == ("key = '[masked]'\n\u202eevil\n", None)
    assert CANARY.encode() not in main.body
    assert (binary["text"], binary["sha256"]) == (None, hashlib.sha256(BINARY).hexdigest())
    assert (long["text"], long["size"], link["text"]) == (None, MAX_FILE_BYTES + 1, None)
    assert refused == [404] * 5


@pytest.mark.requirement("review:difference")
async def test_a_changed_plugin_shows_the_difference_of_each_file_to_the_allowed_one(tmp_path: Path) -> None:
    folder = make_plugin(tmp_path / "home" / "plugins", "Strange")
    (folder / "main.py").write_text("one\ntwo\n")
    (folder / "old.py").write_text("gone\n")
    async with run_server(tmp_path) as running:
        await allow(running, "Strange")
        kept = list((running.home / "reviewed").iterdir())
        (folder / "main.py").write_text("one\nthree\n")
        (folder / "old.py").unlink()
        (folder / "new.py").write_text("come\n")
        manifest = folder / "plugin-manifest.json"
        manifest.write_text(manifest.read_text().replace("}", "}\n", 1))
        await running.post("/v1/plugins/Strange/reload")
        listed = await list_files(running, "/v1/plugins/Strange")
        lines = {}
        for path in listed:
            patch = (await running.get(f"/v1/plugins/Strange/file?path={path}")).json["structured_patch"]
            lines[path] = [line for hunk in patch or [] for line in hunk["lines"]]
        await allow(running, "Strange")
        after = await list_files(running, "/v1/plugins/Strange")
    assert len(kept) == 1
    assert {path: change for path, (_, _, change) in listed.items()} == {
        "plugin-manifest.json": "changed", "main.py": "changed", "new.py": "added", "old.py": "removed",
    }  # fmt: skip
    assert lines["main.py"] == [" one", "-two", "+three"]
    assert (lines["new.py"], lines["old.py"]) == (["+come"], ["-gone"])
    assert lines["plugin-manifest.json"]
    assert {change for _, _, change in after.values()} == {"none"}


@pytest.mark.requirement("review:files")
async def test_the_files_of_a_staged_plugin_are_read_before_it_is_allowed(tmp_path: Path) -> None:
    folder = make_plugin(tmp_path / "elsewhere", "Fresh")
    async with run_server(tmp_path) as running:
        staged = await upload(running, zip_folder(folder))
        place = f"/v1/plugins/install/{staged.json['staged']}"
        assert set(await list_files(running, place)) == {"plugin-manifest.json", "main.py"}
        text = (await running.get(f"{place}/file?path=main.py")).json["text"]
        assert text == (folder / "main.py").read_text()
        assert (await running.get(f"{place}/file?path=../x")).status == 404
        assert (await running.get("/v1/plugins/install/none/files")).status == 404


@pytest.mark.requirement("review:difference")
def test_a_copy_counts_only_with_the_digest_that_was_allowed(tmp_path: Path) -> None:
    folder, copies = tmp_path / "plugin", ReviewedFiles(tmp_path / "home")
    folder.mkdir()
    digests = {}
    for name, content in (("a.py", b"a\n"), ("b.so", BINARY), ("c.txt", b"c" * (MAX_FILE_BYTES + 1))):
        (folder / name).write_bytes(content)
        digests[name] = hashlib.sha256(content).hexdigest()
    copies.keep(folder, digests)
    assert copies.read(folder, "a.py", digests["a.py"]) == "a\n"
    assert copies.read(folder, "a.py", digests["b.so"]) is None
    assert [copies.read(folder, name, digests[name]) for name in ("b.so", "c.txt")] == [None, None]
    (archive,) = (tmp_path / "home" / "reviewed").iterdir()
    archive.write_bytes(b"PK damaged")
    assert copies.read(folder, "a.py", digests["a.py"]) is None
    copies.forget(folder)
    assert copies.read(folder, "a.py", digests["a.py"]) is None
