"""Errors of ``toolyard chat`` when its server cannot be used."""

from pathlib import Path

import pytest

from toolyard.cli.chat_client import open_chat_client
from toolyard.cli.commands.chat import Screen, _Conversation
from toolyard.config import load_config
from toolyard.errors import ToolyardError, UsageError
from toolyard.web.server.lifecycle import Server, ServerOptions

pytestmark = pytest.mark.requirement("cli:chat")


async def test_a_server_that_does_not_take_the_key_is_told_before_anything_is_typed(
    project: Path, tmp_path: Path
) -> None:
    server = Server(load_config(project, tmp_path / "served"), ServerOptions(version="1", port=0, safe=True))
    await server.start()
    try:
        for key in ("", "wrong"):
            async with open_chat_client(load_config(project, tmp_path / "home"), url=server.url, key=key) as talk:
                with pytest.raises(ToolyardError, match=r"rejected the key: pass the one"):
                    await talk.list_models()
        async with open_chat_client(load_config(project, tmp_path / "home"), url=server.url, key=server.key) as talk:
            assert await talk.list_models() == ["tour"]
    finally:
        await server.stop()


async def test_a_server_whose_provider_is_down_tells_why_only_the_guide_is_listed(
    project: Path, tmp_path: Path
) -> None:
    (tmp_path / "served").mkdir()
    (tmp_path / "served/config.toml").write_text('upstream_url = "http://127.0.0.1:9/v1"\n')
    server = Server(load_config(project, tmp_path / "served"), ServerOptions(version="1", port=0, safe=True))
    await server.start()
    try:
        async with open_chat_client(load_config(project, tmp_path / "home"), url=server.url, key=server.key) as talk:
            conversation = _Conversation(talk, Screen({}), "")
            with pytest.raises(ToolyardError, match=r"no model can be chosen: The model provider .* cannot be reached"):
                await conversation._choose_model(await talk.list_models())
    finally:
        await server.stop()


async def test_an_address_without_a_scheme_is_refused_with_an_example(project: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'yard:6005' is not a server URL: write it like http://"):
        async with open_chat_client(load_config(project, tmp_path / "home"), url="yard:6005"):
            pytest.fail("it was taken for an address")
