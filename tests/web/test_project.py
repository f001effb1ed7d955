"""The project folder over HTTP: what a person sees who chooses a path."""

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FakeTool
from tests.web.conftest import RunningServer
from toolyard.protocol.content import Media, make_stored_path
from toolyard.protocol.envelope import Extras
from toolyard.protocol.tool import Checkpoint, Result, ToolCall
from toolyard.workspace.folder_listing import MAX_ENTRIES

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.mark.requirement("tool-page:paths")
async def test_a_folder_is_listed_by_name_inside_the_project_only_and_not_journalled(
    running_server: RunningServer, tmp_path: Path
) -> None:
    project = running_server.project
    (project / "src" / "deep").mkdir(parents=True)
    for name in ("b.txt", "A.txt", ".env", "中文.md", "src/main.py"):
        (project / name).write_text("x")
    (project / "out").symlink_to(tmp_path.parent)

    async def list_folder(path: str, more: str = "") -> tuple[int, Any]:
        response = await running_server.get(f"/v1/project/folder?path={path}{more}")
        return response.status, response.json

    status, top = await list_folder(".")
    assert (status, top["path"], top["truncated"]) == (200, ".", False)
    assert [(one["name"], one["type"]) for one in top["entries"]] == [
        ("src", "folder"), ("A.txt", "file"), ("b.txt", "file"), ("out", "link"), ("中文.md", "file"), (".env", "file"),
    ]  # fmt: skip
    _, inner = await list_folder("src")
    assert [one["path"] for one in inner["entries"]] == ["src/deep", "src/main.py"]
    assert (await list_folder("src/main.py"))[0] == 400
    assert (await list_folder("src/none"))[0] == 404
    assert (await list_folder("src/main.py", "&nearest=true"))[1]["path"] == "src"
    assert (await list_folder("src/no/where", "&nearest=true"))[1]["path"] == "src"
    for outside in ("..", "/etc", "src/../..", "out", str(tmp_path.parent)):
        for more in ("", "&nearest=true"):
            status, body = await list_folder(outside, more)
            assert (status, body["error"]["message_code"]) == (403, "file.outside_project"), outside
    assert (await running_server.get("/v1/calls")).json["data"] == []
    for number in range(MAX_ENTRIES + 1):
        (project / "src" / "deep" / f"{number}").touch()
    _, many = await list_folder("src/deep")
    assert (len(many["entries"]), many["truncated"]) == (MAX_ENTRIES, True)


@pytest.mark.requirement("tool-page:result")
async def test_media_of_a_result_are_shown_again_by_the_call_that_gave_them(running_server: RunningServer) -> None:
    source = make_stored_path(PNG, "image/png")

    async def draw(call: ToolCall, checkpoint: Checkpoint) -> Result:
        return Result(data={}, text="Drawn.", extras=Extras(parts=(Media("image/png", PNG, source=source),)))

    running_server.yard.tools.add(FakeTool(draw, name="Draw"))
    await running_server.post("/v1/tools/Draw", {})
    [call] = (await running_server.get("/v1/calls?tool=Draw")).json["data"]
    envelope = (await running_server.get(f"/v1/calls/{call['id']}")).json["envelope"]
    assert [part["path"] for part in envelope["data"]["content"]] == [source]
    shown = await running_server.get(f"/v1/calls/{call['id']}/media/0")
    assert (shown.status, shown.headers["Content-Type"], shown.body) == (200, "image/png", PNG)
    assert "sandbox" in shown.headers["Content-Security-Policy"]
    assert (await running_server.get(f"/v1/calls/{call['id']}/media/1")).status == 404
    (running_server.project / source).write_text("<script>alert(1)</script>")
    assert (await running_server.get(f"/v1/calls/{call['id']}/media/0")).status == 404


@pytest.mark.requirement("tool-page:commands")
async def test_each_command_of_a_tool_comes_with_the_schema_of_its_own_calls(running_server: RunningServer) -> None:
    tool = (await running_server.get("/v1/tools/FileOperator")).json
    forms = {form["name"]: form for form in tool["forms"]}
    assert list(forms) == tool["commands"]
    read = forms["ReadFile"]
    assert read["parameters"]["required"] == ["command", "filePath"]
    assert set(read["parameters"]["properties"]) == {"command", "filePath", "encoding", "lines"}
    assert read["parameters"]["properties"]["command"] == {"type": "string", "const": "ReadFile"}
    assert set(read["translations"]["zh"]["parameters"]) == {"filePath", "encoding", "lines"}
    examples = [one["arguments"] for one in tool["examples"] if one["command"] == "ReadFile"]
    assert examples == [{"command": "ReadFile", "filePath": "README.md"}]
    assert (await running_server.get("/v1/tools/LS")).json["forms"] == []
