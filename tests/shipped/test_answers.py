"""What the shipped plugins that draw print, through the host: VCP v2 comes out as it was printed."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.yards import PluginYard
from tests.shipped.children import PLUGINS, run, serving
from tests.shipped.test_image import INLINE

pytestmark = pytest.mark.requirement("plugin:vcp-v2")


async def both(place: Path, tool: str, arguments: dict[str, Any], config: str = "") -> tuple[Any, Any]:
    """The VCP dialect and the envelope of one call of an own copy of a shipped plugin."""
    async with PluginYard(place) as host:
        folder = host.folder / tool
        shutil.copytree(PLUGINS / tool, folder)
        (folder / "config.env").write_text(config)
        (folder / "config.env").chmod(0o600)
        call = host.yard.calls.request(tool, arguments)
        outcome = await host.yard.calls.settle(call)
        return host.yard.results.express(call, outcome, "vcp"), outcome.envelope.to_dict()


async def test_a_chart_of_plotter_passes_unchanged(tmp_path: Path) -> None:
    arguments = {"type": "line", "data": "1,2,3"}
    printed = run("Plotter", arguments, tmp_path).answer
    assert printed["status"] == "success", printed
    encoded, envelope = await both(tmp_path, "Plotter", arguments)
    assert encoded == printed
    content = envelope["data"].pop("content")
    assert envelope["data"] == printed["result"]["details"]
    assert (tmp_path / "project" / content[1]["path"]).stat().st_size == content[1]["size"]


async def test_a_picture_of_imagegen_passes_unchanged(tmp_path: Path) -> None:
    with serving(lambda _: INLINE) as provider:
        config = f"IMAGE_API_KEY=sk-test\nIMAGE_API_BASE={provider.url}/v1\n"
        encoded, envelope = await both(tmp_path, "ImageGen", {"prompt": "一只猫"}, config)
    details = encoded["result"]["details"]
    assert set(details) == {"prompt", "resolution", "model", "count", "files"}
    assert [part["type"] for part in encoded["result"]["content"]] == ["text", "image_url"]
    assert {key: value for key, value in envelope["data"].items() if key != "content"} == details
    assert envelope["data"]["content"][1]["type"] == "image"
