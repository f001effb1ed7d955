"""Folds that open by what a conversation is about, with a provider of embeddings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.fakes import FakeClock
from tests.vcp.prompts import Tree, fill_messages
from toolyard.protocol.json import Json
from toolyard.vcp.prompt_files import PromptFiles
from toolyard.vcp.similarity import Similarities

pytestmark = pytest.mark.requirement("vcp:prompts:folds")
WORDS = ("file", "music")
BOX = "always\n[===vcp_fold: 0.6 ::desc: about a file===]\nfile tools\n[===vcp_fold: 0.6 ::desc: music===]\nplayer"


@asynccontextmanager
async def embeddings(asked: list[Any], status: int = 200) -> AsyncIterator[str]:
    async def embed(request: web.Request) -> web.Response:
        asked.append((request.headers["Authorization"], await request.json()))
        (text,) = asked[-1][1]["input"]
        vector = [float(text.count(word)) for word in WORDS]
        return web.json_response({"data": [{"embedding": vector}]}, status=status)

    app = web.Application()
    app.router.add_post("/v1/embeddings", embed)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


def write_tree(place: Path, url: str, *, has_plugin: bool = True) -> Path:
    settings = f"API_URL={url}\nAPI_Key=sk-embed\nWhitelistEmbeddingModel=embedder\n"
    tree = Tree(root=place, toolboxes={"Box": BOX}, settings=settings).write()
    if has_plugin:
        (tree / "Plugin/RAGDiaryPlugin").mkdir(parents=True, exist_ok=True)
        (tree / "Plugin/RAGDiaryPlugin/plugin-manifest.json").write_text("{}")
    return tree


def ask(*texts: str) -> list[Json]:
    roles = ("user", "assistant")
    said: list[Json] = [{"role": roles[number % 2], "content": text} for number, text in enumerate(texts)]
    return [{"role": "system", "content": "{{Box}}"}, *said]


async def fill(tree: Path, similarities: Similarities, *texts: str) -> str:
    return str((await fill_messages(tree, ask(*texts), similarity=similarities.compare))[0]["content"])


async def test_a_toolbox_opens_what_the_last_question_and_answer_are_about(tmp_path: Path) -> None:
    asked: list[Any] = []
    async with embeddings(asked) as url:
        tree = write_tree(tmp_path, url)
        similarities = Similarities(PromptFiles(tree), FakeClock().monotonic)
        shown = await fill(tree, similarities, "old music", "fine", "Open a <b>file</b>.")
        assert "file tools" in shown
        assert "player" not in shown
        assert asked[0] == ("Bearer sk-embed", {"model": "embedder", "input": ["Open a file."]})
        count = len(asked)
        assert "file tools" in await fill(tree, similarities, "old music", "fine", "Open a file.")
        assert len(asked) == count, "vectors are kept"
        both = await fill(tree, similarities, "music file", "file and music", "[系统提示:]无内容")
        assert "file tools" in both
        assert "player" in both
        (tree / "rag_params.json").write_text('{"RAGDiaryPlugin": {"mainSearchWeights": [0, 1]}}')
        assert "player" in await fill(tree, similarities, "file", "music", "file")
        assert "file tools" not in await fill(tree, similarities, "file", "music", "file")


async def test_without_embeddings_the_base_block_is_shown_and_a_failing_provider_is_left_alone(tmp_path: Path) -> None:
    asked: list[Any] = []
    clock = FakeClock()
    async with embeddings(asked, status=500) as url:
        for tree in (write_tree(tmp_path / "a", url, has_plugin=False), write_tree(tmp_path / "b", "YOUR_SUCH_AS_x")):
            assert await fill(tree, Similarities(PromptFiles(tree), clock.monotonic), "a file") == "always"
        assert asked == []
        tree = write_tree(tmp_path / "c", url)
        similarities = Similarities(PromptFiles(tree), clock.monotonic)
        assert await fill(tree, similarities, "a file") == "always"
        assert await fill(tree, similarities, "another file") == "always"
        assert len(asked) == 1
        clock.advance(61)
        assert await fill(tree, similarities, "a file") == "always"
        assert len(asked) == 2
        assert await fill(tree, similarities) == "always"
