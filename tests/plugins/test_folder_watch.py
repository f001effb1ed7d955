"""Hot reload of plugin folders."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.plugins.folders import make_plugin, manifest_text, plugins_in
from tests.waiting import run_loop_once
from toolyard.plugins.package.discovery import Plugins
from toolyard.plugins.package.folder_watch import is_relevant, watch_folders

NEVER_S = 600.0
PATIENCE_S = 60.0


class WatchedPlugins:
    """Plugins that are refreshed by a watch; tests wait for what they look like then."""

    def __init__(self, plugins: Plugins) -> None:
        self.plugins = plugins
        self._looked = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    def changed(self) -> None:
        self.plugins.refresh()
        task = asyncio.ensure_future(self._tell())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self) -> None:
        async with self._looked:
            self._looked.notify_all()

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S), self._looked:
            await self._looked.wait_for(true)


@asynccontextmanager
async def watching(plugins: Plugins, *, every_s: float = NEVER_S) -> AsyncIterator[WatchedPlugins]:
    """A running watch; by default it never looks without a notice."""
    watched = WatchedPlugins(plugins)
    plugins.refresh()
    stop, armed = asyncio.Event(), asyncio.Event()

    def places() -> frozenset[Path]:
        armed.set()
        return plugins.watched_folders()

    task = asyncio.create_task(watch_folders(places, watched.changed, stop=stop, quiet_s=0.05, every_s=every_s))
    try:
        await asyncio.wait_for(armed.wait(), PATIENCE_S)
        yield watched
    finally:
        stop.set()
        await asyncio.wait_for(task, PATIENCE_S)


def version(plugins: Plugins) -> str:
    plugin = plugins.get("Some")
    return plugin.manifest.version if plugin and plugin.manifest else ""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "all").mkdir()
    return tmp_path / "all"


@pytest.mark.requirement("r:R31", "plugin:discovery")
async def test_manifests_settings_and_code_are_noticed(root: Path, tmp_path: Path) -> None:
    folder = make_plugin(root, "Some", version="1")
    (folder / "lib").mkdir()
    plugins = plugins_in(root, home=tmp_path / "home")
    async with watching(plugins) as watched:
        (folder / "plugin-manifest.json").write_text(manifest_text("Some", version="2"))
        await watched.until(lambda: version(plugins) == "2")
        (folder / "config.env").write_text("A=1\n")
        await watched.until(lambda: plugins.all[0].config == {"A": "1"})
        before = plugins.all[0].fingerprint
        (folder / "lib/part.py").write_text("1\n")
        await watched.until(lambda: plugins.all[0].fingerprint != before)


@pytest.mark.requirement("r:R31", "plugin:discovery", "plugin:disabled")
async def test_plugins_that_come_go_or_are_disabled_are_noticed(root: Path, tmp_path: Path) -> None:
    plugins = plugins_in(root, home=tmp_path / "home")
    async with watching(plugins) as watched:
        folder = make_plugin(root, "Some", version="1")
        await watched.until(lambda: version(plugins) == "1")
        (folder / "plugin-manifest.json").rename(folder / "plugin-manifest.json.block")
        await watched.until(lambda: bool(plugins.all) and plugins.all[0].state == "disabled")
        shutil.rmtree(folder)
        await watched.until(lambda: plugins.all == ())


@pytest.mark.requirement("r:R31", "plugin:discovery")
async def test_a_plugin_folder_that_did_not_exist_is_noticed(root: Path, tmp_path: Path) -> None:
    later = tmp_path / "later"
    plugins = plugins_in(later, home=tmp_path / "home")
    async with watching(plugins) as watched:
        make_plugin(later, "Some", version="1")
        await watched.until(lambda: version(plugins) == "1")


@pytest.mark.requirement("r:R30")
async def test_a_half_written_manifest_keeps_the_last_good_one(root: Path, tmp_path: Path) -> None:
    folder = make_plugin(root, "Some", version="1")
    plugins = plugins_in(root, home=tmp_path / "home")
    text = manifest_text("Some", version="2")
    async with watching(plugins) as watched:
        (folder / "plugin-manifest.json").write_text(text[: len(text) // 2])
        await watched.until(lambda: "last good version" in plugins.all[0].reason)
        assert version(plugins) == "1"
        (folder / "plugin-manifest.json").write_text(text)
        await watched.until(lambda: version(plugins) == "2")


@pytest.mark.requirement("r:R31")
@pytest.mark.parametrize("silent", [[], ["gone"]])
async def test_where_no_notices_come_the_folders_are_looked_at_every_few_seconds(
    root: Path, tmp_path: Path, silent: list[str]
) -> None:
    folder = make_plugin(root, "Some", version="1")
    plugins = plugins_in(root, home=tmp_path / "home")
    watched, stop = WatchedPlugins(plugins), asyncio.Event()
    task = asyncio.create_task(
        watch_folders(lambda: [tmp_path / name for name in silent], watched.changed, stop=stop, every_s=0.05)
    )
    await watched.until(lambda: version(plugins) == "1")
    (folder / "plugin-manifest.json").write_text(manifest_text("Some", version="2"))
    await watched.until(lambda: version(plugins) == "2")
    stop.set()
    await asyncio.wait_for(task, PATIENCE_S)


@pytest.mark.requirement("r:R31", "plugin:discovery")
@pytest.mark.parametrize(
    ("name", "matter"),
    [("plugin-manifest.json", True), ("plugin-manifest.json.block", True), ("config.env", True), ("main.js", True),
     ("trust.json", True), ("disabled.json", True), ("NewPlugin", True), ("folder.d", True), ("cache.json", False),
     ("plugin.log", False), ("node_modules", False), (".git", False)],
)  # fmt: skip
def test_what_plugins_write_while_they_run_does_not_matter(tmp_path: Path, name: str, matter: bool) -> None:
    (tmp_path / "folder.d").mkdir()
    assert is_relevant(str(tmp_path / name)) is matter


@pytest.mark.requirement("r:R31")
async def test_a_watch_that_is_cancelled_ends(root: Path) -> None:
    task = asyncio.create_task(watch_folders(lambda: [root], lambda: None, stop=asyncio.Event()))
    await run_loop_once()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, PATIENCE_S)
