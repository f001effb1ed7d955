"""Compiled Python: what was reviewed is what runs, whatever lies in ``__pycache__``."""

import importlib.util
import os
import py_compile
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.plugins.folders import make_plugin, plugins_in
from tests.plugins.yards import PluginYard
from toolyard.plugins.package import environment
from toolyard.plugins.package.environment import add_cache_option, make_cache_folder

pytestmark = pytest.mark.requirement("plugin:bytecode")

MAIN = "import json, helper\nprint(json.dumps({'status': 'success', 'result': [helper.WORD, helper.__cached__]}))"


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[PluginYard]:
    async with PluginYard(tmp_path) as host:
        yield host


def poison(folder: Path) -> None:
    """Put compiled code beside a source that Python takes for the source's own."""
    source, evil = folder / "helper.py", folder.parent / "evil.py"
    evil.write_text(source.read_text().replace("good", "evil"))
    os.utime(evil, ns=(source.stat().st_atime_ns, source.stat().st_mtime_ns))
    cached = importlib.util.cache_from_source(str(source))
    py_compile.compile(str(evil), cached, dfile=str(source), doraise=True)
    evil.unlink()


def test_python_alone_would_run_what_lies_in_pycache(tmp_path: Path) -> None:
    folder = tmp_path / "plugin"
    folder.mkdir()
    (folder / "helper.py").write_text("WORD = 'good'\n")
    poison(folder)
    done = subprocess.run(
        [sys.executable, "-c", "import helper; print(helper.WORD)"],
        cwd=folder, env={"PATH": os.defpath}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "evil\n"


@pytest.mark.parametrize("command", ["python main.py", "python -E main.py", "python -I start.py", "sh start.sh"])
async def test_what_lies_in_pycache_beside_the_sources_is_not_run(host: PluginYard, command: str) -> None:
    folder = host.add("Some", MAIN, entryPoint={"command": command})
    (folder / "start.py").write_text(f"import sys; sys.path.insert(0, {str(folder)!r})\n{MAIN}")
    (folder / "start.sh").write_text("exec python3 main.py\n")
    (folder / "helper.py").write_text("WORD = 'good'\n")
    poison(folder)
    for _ in range(3):  # cold, and by what was started ahead
        outcome = await host.call("Some")
        data = outcome.envelope.to_dict()["data"]
        assert "good" in str(data), outcome.envelope.text
        assert str(host.place / "home/python-cache/Some") in str(data)


def test_each_version_of_a_plugin_has_a_cache_of_its_own_and_the_last_ones_are_kept(tmp_path: Path) -> None:
    root, home = tmp_path / "plugins", tmp_path / "home"
    home.mkdir()
    folder = make_plugin(root, "Some")
    made = []
    for number in range(environment.MAX_VERSIONS + 2):
        (folder / "main.py").write_text(f"print({number})\n")
        plugins = plugins_in(root, home=home)
        plugins.refresh()
        cache = make_cache_folder(home, plugins.all[0])
        assert cache is not None
        os.utime(cache, ns=(number, number))
        made.append(cache)
    assert len(set(made)) == len(made)
    assert [cache.is_dir() for cache in made] == [False, False, *[True] * environment.MAX_VERSIONS]
    assert made[-1].stat().st_mode & 0o077 == 0


@pytest.mark.requirement("confinement:links")
def test_the_removal_of_old_caches_follows_no_link(tmp_path: Path) -> None:
    root, home, kept = tmp_path / "plugins", tmp_path / "home", tmp_path / "kept"
    own = home / environment.CACHE_FOLDER / "Some"
    own.mkdir(parents=True)
    kept.mkdir()
    (kept / "file").touch()
    for number in range(environment.MAX_VERSIONS + 2):
        (own / f"old-{number}").symlink_to(kept)
        (own / f"inner-{number}").mkdir()
        (own / f"inner-{number}/link").symlink_to(kept)
    make_plugin(root, "Some")
    plugins = plugins_in(root, home=home)
    plugins.refresh()
    assert make_cache_folder(home, plugins.all[0]) is not None
    assert (kept / "file").exists()
    assert len([path for path in own.iterdir() if not path.is_symlink()]) <= environment.MAX_VERSIONS


def test_a_plugin_without_python_has_no_cache(tmp_path: Path) -> None:
    folder = make_plugin(tmp_path / "plugins", "Some", entryPoint={"command": "sh main.sh"})
    (folder / "main.py").rename(folder / "main.sh")
    plugins = plugins_in(tmp_path / "plugins", home=tmp_path)
    plugins.refresh()
    assert plugins.all[0].is_ready
    assert make_cache_folder(tmp_path, plugins.all[0]) is None


def test_only_a_python_that_ignores_its_environment_gets_the_cache_as_an_option() -> None:
    cache = Path("/cache")
    for argv in (("/bin/python3", "main.py"), ("/bin/python3", "main.py", "-I"), ("/bin/node", "-E", "main.js")):
        assert add_cache_option(argv, cache) == argv
    for flags in (("-I",), ("-uE",), ("-u", "-I")):
        expected = ("/bin/python3", "-Xpycache_prefix=/cache", *flags, "main.py")
        assert add_cache_option(("/bin/python3", *flags, "main.py"), cache) == expected
