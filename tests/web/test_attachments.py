"""Files for chat messages: uploaded ones, and those of the project."""

import os
from typing import Any

import pytest

from tests.tools.media import PNG, pdf
from tests.web.conftest import RunningServer
from toolyard.protocol.store import Query
from toolyard.tools import project_files
from toolyard.web.security.scope import Scope

pytestmark = pytest.mark.requirement("http:attachments")


async def upload(server: RunningServer, name: str, raw: bytes, key: str = "") -> tuple[int, dict[str, Any]]:
    headers = {"Content-Type": "application/octet-stream"}
    response = await server.request(
        "POST", "/v1/attachments", params={"name": name}, data=raw, headers=headers, key=key
    )
    return response.status, response.json


async def test_the_text_of_an_uploaded_file_or_pdf_is_returned_whatever_its_encoding(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = running_server.make_key(Scope.CHAT)
    status, text = await upload(running_server, "笔记.txt", "你好，世界。工具院子里的笔记。".encode("gb18030"), key)
    assert (status, text["kind"], text["text"]) == (200, "text", "你好，世界。工具院子里的笔记。")
    status, pages = await upload(running_server, "a.pdf", pdf("First page", "Second page"), key)
    assert (status, pages["kind"], pages["pages"], pages["truncated"]) == (200, "pdf", 2, False)
    assert "First page" in pages["text"]
    assert "Second page" in pages["text"]
    monkeypatch.setattr(project_files, "MAX_CHARACTERS", 30)
    _, cut = await upload(running_server, "long.txt", b"x" * 31)
    assert (len(cut["text"]), cut["truncated"], cut["size"]) == (30, True, 31)
    _, cut = await upload(running_server, "a.pdf", pdf("First page", "Second page", "Third page"))
    assert cut["truncated"]
    assert "Third" not in cut["text"]


async def test_what_has_no_text_is_refused_with_the_reason(running_server: RunningServer) -> None:
    for name, raw, code in (
        ("a.zip", b"PK\3\4\0\0", "attachment.unsupported"),
        ("a.mp3", b"ID3\3\0\0\0", "attachment.unsupported"),
        ("scan.pdf", pdf(""), "attachment.pdf_without_text"),
        ("broken.pdf", b"%PDF-1.4\n%%EOF", "attachment.pdf_broken"),
        ("nothing", b"", "attachment.empty"),
    ):
        status, answer = await upload(running_server, name, raw)
        assert (status, answer["error"]["message_code"]) == (400, code)
    wrong = await running_server.post("/v1/attachments?name=a", {"text": "x"})
    assert wrong.status == 415


async def test_project_files_are_found_and_attached_without_a_call_in_the_journal(
    running_server: RunningServer,
) -> None:
    root = running_server.yard.config.project
    for number, path in enumerate(("docs/notes.md", "src/other_notes.py", "notes/plain.txt", "dot.png", ".env")):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_bytes(PNG if path.endswith("png") else f"text of {path}".encode())
        os.utime(root / path, (1e9 + number, 1e9 + number))

    async def find(search: str, limit: int = 50) -> dict[str, Any]:
        found = await running_server.get("/v1/project/files", params={"search": search, "limit": limit})
        return {"paths": [row["path"] for row in found.json["data"]], "truncated": found.json["truncated"]}

    recent = ["dot.png", "notes/plain.txt", "src/other_notes.py", "docs/notes.md"]
    assert (await find(""))["paths"] == recent, "the last changed first, nothing hidden"
    assert (await find("notes"))["paths"] == ["docs/notes.md", "src/other_notes.py", "notes/plain.txt"]
    assert (await find("NOTES plain"))["paths"] == ["notes/plain.txt"]
    assert await find("notes", 1) == {"paths": ["docs/notes.md"], "truncated": True}

    async def attach(path: str, key: str = "") -> tuple[int, dict[str, Any]]:
        response = await running_server.get("/v1/project/attachment", params={"path": path}, key=key)
        return response.status, response.json

    status, text = await attach("docs/notes.md")
    assert (status, text["name"], text["text"]) == (200, "docs/notes.md", "text of docs/notes.md")
    _, picture = await attach("dot.png")
    assert (picture["kind"], picture["image"][:22]) == ("image", "data:image/png;base64,")
    for path, expected in (("../home/config.toml", 403), ("docs", 400), ("missing.txt", 404)):
        assert (await attach(path))[0] == expected, path
    assert (await attach("docs/notes.md", running_server.make_key(Scope.CHAT)))[0] == 403
    assert await running_server.yard.state.journal.page(Query(), limit=5) == []
