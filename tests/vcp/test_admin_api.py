"""VCPToolBox's admin API, as far as its clients read it; and what is answered where it is not here."""

import json
import logging
from http import HTTPStatus
from pathlib import Path

import aiohttp
import pytest

from tests.vcp.node import connect_node, manifest
from tests.vcp.tree import Tree
from tests.web.conftest import RunningServer, run_server
from toolyard.web.routes.plugins import vcp_admin
from toolyard.web.security.scope import Scope


def make_basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": aiohttp.encode_basic_auth(name, password)}


def add_settings(tree: Path, lines: str) -> None:
    file = tree / "config.env"
    file.write_text(file.read_text(encoding="utf-8") + lines, encoding="utf-8")


async def read(running: RunningServer, path: str, headers: dict[str, str] | None = None) -> tuple[int, str]:
    answer = await running.request("GET", path, key=None, headers=headers or make_basic("admin", "panel-password"))
    return answer.status, answer.body.decode()


@pytest.fixture
def panel(tree: Path) -> Path:
    add_settings(tree, "AdminUsername=admin\nAdminPassword=panel-password\n")
    (tree / "Agent/team").mkdir()
    (tree / "Agent/team/Ann.md").write_text("You are Ann.", encoding="utf-8")
    (tree / "Agent/link.txt").symlink_to(tree / "config.env")
    return tree


@pytest.mark.requirement("vcp:admin-api")
async def test_the_admin_password_opens_the_admin_api_and_nothing_else(panel: Path, tmp_path: Path) -> None:
    async with run_server(tmp_path, settings=f'vcp = "{panel}"') as running:
        assert (await read(running, "/admin_api/agents/map"))[0] == HTTPStatus.OK
        assert (await read(running, "/admin_api/agents/map", make_basic("any", running.key)))[0] == HTTPStatus.OK
        tools = running.make_key(Scope.TOOLS)
        assert (await read(running, "/admin_api/agents/map", make_basic("any", tools)))[0] == HTTPStatus.FORBIDDEN
        for path in ("/v1/calls", "/v1/tools", "/v1/models", "/api/plugins/Show/"):
            assert (await read(running, path))[0] == HTTPStatus.UNAUTHORIZED
        for wrong in (make_basic("admin", "wrong-password"), {"Authorization": "Basic ???"}):
            assert (await read(running, "/admin_api/agents/map", wrong))[0] == HTTPStatus.UNAUTHORIZED
        bearer = {"Authorization": "Bearer panel-password"}
        assert (await read(running, "/admin_api/agents/map", bearer))[0] == HTTPStatus.UNAUTHORIZED


@pytest.mark.requirement("vcp:admin-api")
async def test_a_short_admin_password_is_called_short_and_not_wrong(tree: Path, tmp_path: Path) -> None:
    add_settings(tree, "AdminUsername=admin\nAdminPassword=123456\n")
    async with run_server(tmp_path, settings=f'vcp = "{tree}"') as running:
        status, said = await read(running, "/admin_api/plugins", make_basic("admin", "123456"))
        assert (status, "too short" in said) == (HTTPStatus.UNAUTHORIZED, True)


@pytest.mark.requirement("vcp:admin-api")
async def test_plugins_agents_and_emoji_are_read_without_settings_that_may_be_secret(
    panel: Path, tmp_path: Path
) -> None:
    packs = panel / "Plugin/EmojiListGenerator/generated_lists"
    packs.mkdir(parents=True)
    (packs / "通用表情包.txt").write_text("a.png|b.gif|", encoding="utf-8")
    async with run_server(tmp_path, settings=f'vcp = "{panel}"') as running, connect_node(running) as node:
        await node.register(manifest("Lamp"))
        text = (await read(running, "/admin_api/plugins"))[1]
        assert "the-secret-of-a-sibling" not in text
        rows = {row["name"]: row for row in json.loads(text)}
        assert rows["Show"]["manifest"]["capabilities"]["invocationCommands"]
        assert (rows["Show"]["isDistributed"], rows["Show"]["configEnvContent"]) == (False, None)
        assert (rows["Lamp"]["isDistributed"], rows["Lamp"]["serverId"], rows["Lamp"]["enabled"]) == (
            True, node.id, True
        )  # fmt: skip
        assert json.loads((await read(running, "/admin_api/agents/map"))[1]) == {"Nova": "Nova.txt"}
        listed = json.loads((await read(running, "/admin_api/agents"))[1])
        assert listed["files"] == ["Nova.txt", "team/Ann.md"]
        assert listed["folderStructure"]["team"]["children"]["Ann.md"] == {"type": "file", "path": "team/Ann.md"}
        assert json.loads((await read(running, "/admin_api/agents/team%2FAnn.md"))[1]) == {"content": "You are Ann."}
        for name in ("..%2Fconfig.env", "link.txt", "none.txt"):
            assert (await read(running, f"/admin_api/agents/{name}"))[0] == HTTPStatus.NOT_FOUND
        emoji = json.loads((await read(running, "/admin_api/emojis/list"))[1])
        assert emoji == {"success": True, "data": {"通用表情包": ["a.png", "b.gif"]}}


@pytest.mark.requirement("vcp:admin-api")
async def test_the_log_is_read_on_from_where_a_client_was(
    panel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vcp_admin, "LOG_BYTES", 2000)
    log = logging.getLogger("toolyard.test")
    async with run_server(tmp_path, settings=f'vcp = "{panel}"') as running:
        log.warning("the first line")
        whole = json.loads((await read(running, "/admin_api/server-log"))[1])
        assert "the first line" in whole["content"]
        log.warning("the key is %s", running.key)
        more = json.loads((await read(running, f"/admin_api/server-log?incremental=true&offset={whole['offset']}"))[1])
        assert ("the first line" in more["content"], "the key is" in more["content"]) == (False, True)
        assert running.key not in more["content"]
        for _ in range(100):
            log.warning("another line")
        later = json.loads((await read(running, f"/admin_api/server-log?incremental=true&offset={whole['offset']}"))[1])
        assert later["needFullReload"]
        assert len(json.loads((await read(running, "/admin_api/server-log"))[1])["content"]) <= 2000


@pytest.mark.requirement("vcp:admin-api")
async def test_what_is_not_here_is_answered_with_its_page_in_the_console(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    expected = {
        "/admin_api/config/main": "settings",
        "/admin_api/tool-approval-config": "approvals",
        "/admin_api/forum/posts": "status",
    }
    for has_bridge in (False, True):
        if has_bridge:
            tree.add("Echo")
        async with run_server(tmp_path, settings=tree.config) as running:
            for path, page in expected.items():
                answer = await running.get(path)
                assert answer.status == HTTPStatus.NOT_IMPLEMENTED
                value = json.loads(answer.body)
                assert value["console"] == f"{running.url}/{page}"
                assert value["error"].endswith(value["console"])
            changed = await running.post("/admin_api/plugins/Echo/toggle", {"enable": False})
            assert (changed.status, json.loads(changed.body)["console"]) == (
                HTTPStatus.NOT_IMPLEMENTED, f"{running.url}/tools"
            )  # fmt: skip
