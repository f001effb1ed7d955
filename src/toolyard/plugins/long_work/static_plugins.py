"""Static plugins: programs whose output is the value of a placeholder, run on a schedule.

Each runs at the start and at the times of its ``refreshIntervalCron``. A run that fails, or is too slow, changes
nothing: the last good value stays, also across restarts, and the run is tried again after 1, 2, 4, 8 and 16 s. After
five failures in a row it waits for its next time.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from cronsim import CronSim, CronSimError

from toolyard.errors import StorageError
from toolyard.message import Message
from toolyard.plugins.package.plugin import Plugin
from toolyard.plugins.plugin_host import PluginHost
from toolyard.plugins.process.child import run_child
from toolyard.plugins.process.child_report import explain_failure, limit_run_time
from toolyard.plugins.process.process_output import StderrRing
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.manifests.manifest import Manifest, PluginType
from toolyard.protocol.plugin_answers.plugin_output import read_static_value
from toolyard.protocol.store import Query, Record, Store, read_text

KIND = "static"
_TRIES = 5
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticValue:
    """The last output of a static plugin, whole, and the error since."""

    text: str | None = None
    error: str = ""


class StaticValues:
    def __init__(
        self, host: PluginHost, store: Store, now: Callable[[], datetime], *, runs_timers: bool = True
    ) -> None:
        """Without ``runs_timers`` those of a VCPToolBox installation run once: VCPToolBox itself has their schedule."""
        self.runs_timers = runs_timers
        self._host, self._store, self._now = host, store, now
        self._values: dict[str, StaticValue] = {}
        self._runs: dict[str, tuple[str, asyncio.Task[None]]] = {}  # name -> version of the plugin, its task

    def placeholders(self) -> dict[str, str]:
        """Return the value of each placeholder of every static plugin: of folds the base block."""
        return {name: read_static_value(text) for name, text in self.outputs().items()}

    def outputs(self) -> dict[str, str]:
        """Return what is behind each placeholder of every static plugin, with all blocks of a fold."""
        values: dict[str, str] = {}
        for plugin, manifest in self._static_plugins():
            value = self._values.get(plugin.name, StaticValue())
            text = value.text if value.text is not None else _placeholder_text(manifest, value.error)
            values |= dict.fromkeys(manifest.placeholders, text)
        return values

    def value(self, name: str) -> StaticValue:
        return self._values.get(name, StaticValue())

    async def start(self) -> None:
        """Load the stored values, then run every static plugin on its schedule."""
        for record in await self._store.find(KIND, Query(), limit=1000):
            self._values[record.id] = StaticValue(text=read_text(record.body, "text"))
        self.refresh()

    def refresh(self) -> None:
        """Start new static plugins and stop those that are gone, after plugins changed."""
        current = {plugin.name: (plugin, manifest) for plugin, manifest in self._static_plugins()}
        for name, (version, run) in list(self._runs.items()):
            if name not in current or version != _plugin_version(current[name][0]):
                run.cancel()
                del self._runs[name]
        for name, (plugin, manifest) in current.items():
            if name not in self._runs:
                self._runs[name] = (
                    _plugin_version(plugin),
                    asyncio.create_task(self._run_on_schedule(plugin, manifest)),
                )

    async def close(self) -> None:
        runs = [run for _, run in self._runs.values()]
        for run in runs:
            run.cancel()
        await asyncio.gather(*runs, return_exceptions=True)

    async def update(self, plugin: Plugin, manifest: Manifest) -> str:
        """Run one now. Return its new value, which is stored. Raises Failure."""
        text = (await self._run_plugin(plugin, manifest)).strip()
        value = read_static_value(text)
        if not value:
            raise Failure(Reason.NO_OUTPUT, Message("{name} printed nothing.", name=plugin.name))
        stamp = self._now().timestamp()
        fresh = Record(kind=KIND, id=plugin.name, state="kept", created=stamp, updated=stamp, tool=plugin.name)
        try:
            stored = await self._store.get(KIND, plugin.name)
            await self._store.commit([replace(stored or fresh, updated=stamp, body={"text": text})], lasting=False)
        finally:
            self._values[plugin.name] = StaticValue(text=text)  # a value that was seen is there again after a restart
        return value

    async def _run_on_schedule(self, plugin: Plugin, manifest: Manifest) -> None:
        await self._update_with_retries(plugin, manifest)
        if plugin.installation and not self.runs_timers:
            return
        async for _ in self._due_times(manifest):
            await self._update_with_retries(plugin, manifest)

    async def _update_with_retries(self, plugin: Plugin, manifest: Manifest) -> None:
        for number in range(_TRIES):
            try:
                await self.update(plugin, manifest)
            except Failure as failure:
                self._values[plugin.name] = replace(self.value(plugin.name), error=failure.message)
                _log.warning("static plugin %s failed: %s", plugin.name, failure.message)
                if number + 1 < _TRIES:
                    await asyncio.sleep(2**number)
            except StorageError as error:  # the value is there; only a restart would lose it
                _log.error("the value of %s is not stored: %s", plugin.name, error)
                return
            else:
                return

    async def _due_times(self, manifest: Manifest) -> AsyncIterator[datetime]:
        """Yield each time at which it is to run again; none without a valid cron expression."""
        if not manifest.refresh_cron:
            return
        with contextlib.suppress(CronSimError):
            for due in CronSim(_without_seconds(manifest.refresh_cron), self._now()):
                await self._sleep_until(due)
                yield due

    async def _sleep_until(self, due: datetime) -> None:
        """Sleep in short steps, because the clock may be set in the meantime."""
        while (left := (due - self._now()).total_seconds()) > 0:  # noqa: ASYNC110 there is no event for a clock that is set
            await asyncio.sleep(min(left, 1.0))

    async def _run_plugin(self, plugin: Plugin, manifest: Manifest) -> str:
        """Return the whole stdout of one successful run."""
        ready, manifest = self._host.require_ready(plugin.name)
        launch = replace(self._host.build_launch(ready, manifest), warm=False)
        self._host.make_data_folder(plugin.name)
        ring = StderrRing()
        try:
            async with limit_run_time(plugin.name, manifest.timeout_s):
                child = await self._host.starter.spawn(launch, {})
                report = await run_child(
                    child,
                    b"",
                    children=self._host.children,
                    limits=manifest.limits,
                    stderr=ring,
                    head=manifest.limits.stdout_bytes,
                )
        finally:
            self._host.log_output(plugin.name, "static", ring)
        if report.too_large or report.signal is not None or report.exit_code:
            raise explain_failure(plugin.name, report)
        return report.stdout_head.decode("utf-8", "replace")

    def _static_plugins(self) -> Iterator[tuple[Plugin, Manifest]]:
        for plugin in self._host.plugins.all:
            if plugin.may_run and plugin.manifest and plugin.manifest.type is PluginType.STATIC:
                yield plugin, plugin.manifest


def _plugin_version(plugin: Plugin) -> str:
    """Return a text that changes with the code and the settings."""
    return f"{plugin.fingerprint.digest if plugin.fingerprint else ''}:{hash(frozenset(plugin.config.items()))}"


def _without_seconds(cron: str) -> str:
    """Return a cron expression without its field of seconds, if it has six fields."""
    fields = cron.split()
    return " ".join(fields[1:]) if len(fields) == 6 else cron


def _placeholder_text(manifest: Manifest, error: str) -> str:
    if error:
        return f"[Error updating {manifest.name}: {error}]"
    return f"[{manifest.display_name} is loading]"
