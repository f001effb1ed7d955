"""Static plugins: values of placeholders, refreshed at their times."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.yards import PluginYard
from tests.waiting import wait_until
from toolyard.engine.clock import SystemClock
from toolyard.errors import StorageError
from toolyard.plugins.long_work.static_plugins import StaticValues
from toolyard.protocol.plugin_answers.plugin_output import read_static_value

FOLDED = (
    '{"vcp_dynamic_fold": true, "fold_blocks": [{"threshold": 0.7, "content": "long"},'
    '{"threshold": 0.0, "content": " base "}]}'
)
WEATHER: dict[str, Any] = {
    "capabilities": {"systemPromptPlaceholders": [{"placeholder": "{{Weather}}"}]},
    "pluginType": "static",
}


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[PluginYard]:
    async with PluginYard(tmp_path) as opened:
        yield opened


def values_of(host: PluginYard) -> StaticValues:
    return StaticValues(host.yard.plugins.host, host.yard.state.store, SystemClock().now)


def weather(values: StaticValues) -> str:
    (value,) = values.placeholders().values()
    return value


@pytest.mark.requirement("plugin:type:static")
async def test_the_output_of_a_static_plugin_is_the_value_of_its_placeholder(host: PluginYard) -> None:
    host.add("Weather", "print('  sunny \\n')", **WEATHER)
    values = values_of(host)
    assert "loading" in weather(values)
    await values.start()
    await wait_until(lambda: weather(values) == "sunny")
    await values.close()
    assert "Weather" not in [tool.spec.name for tool in host.yard.tools]


@pytest.mark.requirement("plugin:type:static")
async def test_the_value_is_kept_across_restarts_and_over_failures(
    host: PluginYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = host.add("Weather", "print('sunny')", **WEATHER)
    values = values_of(host)
    await values.start()
    await wait_until(lambda: weather(values) == "sunny")
    await values.close()
    (folder / "main.py").write_text("import no_such_package")
    host.yard.plugins.plugins.refresh()
    again = values_of(host)
    await again.start()
    assert weather(again) == "sunny"
    await wait_until(lambda: "it needs the Python package no_such_package" in again.value("Weather").error)
    assert weather(again) == "sunny"
    await again.close()


@pytest.mark.requirement("plugin:type:static")
async def test_whoever_sees_a_value_finds_it_stored(host: PluginYard, monkeypatch: pytest.MonkeyPatch) -> None:
    host.add("Weather", "print('sunny')", **WEATHER)
    values, seen, commit = values_of(host), list[str](), host.yard.state.store.commit

    async def looks_first(*arguments: Any, **more: Any) -> bool:
        seen.append(weather(values))
        return await commit(*arguments, **more)

    monkeypatch.setattr(host.yard.state.store, "commit", looks_first)
    await values.start()
    await wait_until(lambda: weather(values) == "sunny")
    await values.close()
    assert seen == ["[Weather is loading]"]


@pytest.mark.requirement("plugin:type:static")
async def test_a_value_that_cannot_be_stored_holds_and_is_refreshed_again(
    host: PluginYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = host.add("Weather", "open('runs','a').write('x')\nprint('sunny')", **WEATHER)
    values = values_of(host)

    async def refuses(*_: Any, **__: Any) -> bool:
        raise StorageError("the disk is full")

    monkeypatch.setattr(host.yard.state.store, "commit", refuses)
    plugin, manifest = host.yard.plugins.host.require_ready("Weather")
    await values._update_with_retries(plugin, manifest)
    assert (weather(values), (folder / "runs").read_text()) == ("sunny", "x")


@pytest.mark.requirement("plugin:type:static", "r:R29")
async def test_a_failing_run_is_tried_again_with_growing_pauses_and_then_left(
    host: PluginYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    real, trying = asyncio.sleep, asyncio.current_task()

    async def quick(seconds: float) -> None:
        if asyncio.current_task() is not trying:  # others of this process sleep as well
            await real(seconds)
            return
        pauses.append(seconds)
        await real(0)

    monkeypatch.setattr("toolyard.plugins.long_work.static_plugins.asyncio.sleep", quick)
    folder = host.add("Weather", "open('runs','a').write('x')\nraise SystemExit(3)", **WEATHER)
    values = values_of(host)
    plugin, manifest = host.yard.plugins.host.require_ready("Weather")
    await values._update_with_retries(plugin, manifest)
    assert pauses == [1, 2, 4, 8]
    assert (folder / "runs").read_text() == "xxxxx"
    assert "Error updating Weather" in weather(values)


@pytest.mark.requirement("plugin:type:static")
async def test_a_run_that_takes_too_long_is_a_failure_and_no_value(host: PluginYard) -> None:
    slow = {**WEATHER, "communication": {"protocol": "stdio", "timeout": 300}}
    host.add("Weather", "print('half', flush=True)\nimport time\ntime.sleep(600)", **slow)
    values = values_of(host)
    await values.start()
    await wait_until(lambda: "did not finish" in values.value("Weather").error)
    assert "half" not in weather(values)
    await values.close()


@pytest.mark.requirement("plugin:type:static")
@pytest.mark.parametrize(
    ("stdout", "value"),
    [
        (" plain \n", "plain"),
        (FOLDED, "base"),
        ('{"vcp_dynamic_fold": true}', '{"vcp_dynamic_fold": true}'),
        ('{"a": 1}', '{"a": 1}'),
        ("base\n[===vcp_fold: 0.5 ::desc: more===]\nmore text", "base"),
        ("[===vcp_fold: 0.5 ::desc: a===]\nfirst\n[===vcp_fold: 0.1 ::desc: b===]\nsecond", "second"),
        ('{"vcp_dynamic_fold": true, "fold_blocks": [', '{"vcp_dynamic_fold": true, "fold_blocks": ['),
    ],
)
def test_a_folded_value_is_reduced_to_its_base_block(stdout: str, value: str) -> None:
    assert read_static_value(stdout) == value
