"""The settings of a server that runs, when somebody writes their file."""

import asyncio
import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.folders import make_plugin
from tests.waiting import wait_for_value, wait_until
from tests.web.conftest import RunningServer, run_server
from toolyard.config import Config, load_config
from toolyard.protocol.access import Mode
from toolyard.web.settings import live_settings, settings_change
from toolyard.web.settings.live_settings import SettingsReloader

GOOD = 'approval_mode = "auto"\n'


def save_by_replacing(file: Path, text: str) -> None:
    """Save like editors do: write another file and rename it."""
    draft = file.with_suffix(".new")
    draft.write_text(text)
    draft.replace(file)


@pytest.mark.requirement("r:R92")
async def test_a_configuration_saved_by_rename_holds_soon_and_so_does_one_that_only_its_content_tells_apart(
    tmp_path: Path,
) -> None:
    async with run_server(tmp_path, settings=GOOD) as one:
        approvals, file = one.yard.state.approvals, one.home / "config.toml"
        assert approvals.mode is Mode.AUTO
        save_by_replacing(file, 'approval_mode = "deny"\n')
        await wait_until(lambda: approvals.mode is Mode.DENY)
        before = file.stat()
        file.write_text(GOOD)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
        await wait_until(lambda: approvals.mode is Mode.AUTO)
        file.unlink()
        await wait_until(lambda: approvals.mode is Mode.ASK)


@pytest.mark.requirement("r:R90")
@pytest.mark.parametrize(
    "half", ['approval_mode = "de', 'approval_mode = "den"', 'approval_mode = "deny"\nupstream_ur = 1']
)
async def test_a_half_written_configuration_keeps_the_last_good_one_and_warns_until_it_is_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, half: str
) -> None:
    async with run_server(tmp_path, settings=GOOD) as one:
        file = one.home / "config.toml"
        file.write_text(half)
        await wait_until(lambda: "the last valid ones stay in effect" in caplog.text)
        assert one.yard.state.approvals.mode is Mode.AUTO
        assert file.read_text() == half
        assert str(file) in caplog.text
        assert (await one.get("/v1/tools")).status == 200
        file.write_text('approval_mode = "deny"\n')
        await wait_until(lambda: one.yard.state.approvals.mode is Mode.DENY)


@pytest.mark.requirement("r:R90")
async def test_a_file_that_is_still_being_written_is_read_when_nobody_writes_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text(GOOD)
    looks = iter("abcdd")
    waits: list[float] = []
    reads: list[list[float]] = []
    ended = asyncio.Event()

    async def waited(seconds: float) -> None:
        waits.append(seconds)
        if reads:
            ended.set()
            await asyncio.Event().wait()

    def read(*_: object, **__: object) -> object:
        reads.append(list(waits))
        return load_config(tmp_path, tmp_path)

    monkeypatch.setattr("toolyard.web.settings.live_settings.asyncio.sleep", waited)
    monkeypatch.setattr(live_settings, "_digest", lambda _: next(looks).encode())
    monkeypatch.setattr(settings_change, "load_config", read)
    running = asyncio.create_task(SettingsReloader(load_config(tmp_path, tmp_path), {}).run())
    async with asyncio.timeout(60):
        await ended.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert reads == [[live_settings.POLL_S, 0.3, 0.3, 0.3, 0.3]]


@pytest.mark.requirement("r:R92")
async def test_settings_that_were_read_first_do_not_come_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, begun, goes_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    file, taken = tmp_path / "config.toml", list[Mode]()

    def slowly(*args: Any, **more: Any) -> Config:
        result = load_config(*args, **more)
        if result.settings.approval_mode is Mode.AUTO:
            loop.call_soon_threadsafe(begun.set)
            goes_on.wait(60)
        return result

    takes = {"approval_mode": lambda new: taken.append(new.settings.approval_mode)}
    settings = SettingsReloader(load_config(tmp_path, tmp_path), takes)
    monkeypatch.setattr(settings_change, "load_config", slowly)
    save_by_replacing(file, GOOD)
    first = asyncio.create_task(settings.reload_now())
    async with asyncio.timeout(60):
        await begun.wait()
        save_by_replacing(file, 'approval_mode = "deny"\n')
        second = asyncio.create_task(settings.reload_now())
        await asyncio.wait({second}, timeout=0.2)  # it has the time to come before the first
        goes_on.set()
        await asyncio.gather(first, second)
    assert taken == [Mode.AUTO, Mode.DENY]


@pytest.mark.requirement("r:R90")
async def test_what_holds_only_after_a_restart_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "toolyard.web")
    async with run_server(tmp_path, settings=GOOD) as one:
        save_by_replacing(one.home / "config.toml", 'approval_mode = "deny"\nplugins_at_once = 3\n')
        await wait_until(lambda: "only after a restart: plugins_at_once" in caplog.text)
        assert "have changed and are in effect: approval_mode" in caplog.text
        assert (await one.get("/readyz?verbose")).json["limits"]["plugins_at_once"] == 8


@pytest.mark.requirement("r:R92")
async def test_hosts_and_origins_that_the_owner_adds_are_let_in_without_a_restart(
    running_server: RunningServer,
) -> None:
    named, page = {"Host": "yard.example.org"}, {"Origin": "https://chat.example.org"}
    assert (await running_server.get("/healthz", headers=named)).status == 421
    assert (await running_server.post("/v1/tools/LS", {}, headers=page)).status == 403
    settings = 'allowed_hosts = ["yard.example.org"]\nallowed_origins = ["https://chat.example.org"]\n'
    edge = running_server.server._app
    save_by_replacing(running_server.home / "config.toml", settings)
    await wait_until(lambda: bool(edge.policy.origins))
    assert (await running_server.get("/healthz", headers=named)).status == 200
    assert (await running_server.post("/v1/tools/LS", {}, headers=page)).status == 200


SHOWS = """import json, os
print(json.dumps({"status": "success", "result": os.environ.get("TEAM_NAME", "nothing")}))
"""


@pytest.mark.requirement("r:R92")
async def test_folders_that_the_owner_trusts_and_keys_that_are_shared_hold_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_NAME", "the yard")
    folder = tmp_path / "home/plugins"
    (make_plugin(folder, "Shows") / "main.py").write_text(SHOWS)
    async with run_server(tmp_path) as one:

        async def call_plugin() -> str:
            return str((await one.post("/v1/tools/Shows", {"command": "Go"})).json["text"])

        async def soon(text: str) -> None:
            await wait_for_value(call_plugin, lambda answer: text in answer)

        assert "nobody has allowed it yet" in await call_plugin()
        file, trusted = one.home / "config.toml", f'trusted_folders = ["{folder}"]\n'
        save_by_replacing(file, trusted)
        await soon("nothing")
        save_by_replacing(file, f'{trusted}[shared_keys]\nShows = ["TEAM_NAME"]\n')
        await soon("the yard")
        save_by_replacing(file, "")
        await soon("nobody has allowed it yet")
