"""The settings that take effect without a restart: their files are watched, and what has changed is applied.

The content of the files is checked every ``POLL_S`` seconds by what is in them, because not every drive tells of
changes and not every editor writes in place. What has changed is read when it has stayed the same for ``STABLE_S``.
With a mistake in it, or half written, all of the last good settings stay, and the log says what is wrong and where; the
files are only ever read. A setting that ``map_appliers`` names takes effect at once; the log names the others, which
need a restart. A running chat stays with the model provider it began with.
"""

import asyncio
import hashlib
import logging
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from toolyard.config import FILE_NAME, HOST_FILE, Config
from toolyard.engine.clock import Clock
from toolyard.errors import ToolyardError
from toolyard.gateway.chats import Chat
from toolyard.gateway.media_links import MediaLinks
from toolyard.web.security.request_head import HostPolicy, make_host_policy
from toolyard.web.server.listener import local_url, make_url
from toolyard.web.settings.settings_change import reload_config
from toolyard.yard.chat import change_upstreams, read_search
from toolyard.yard.yard import Yard

ApplySettings = Callable[[Config], None]
POLL_S: Final = 1.0
STABLE_S: Final = 0.3
_log = logging.getLogger("toolyard.web")


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """The address that a server listens on."""

    host: str
    port: int
    scheme: str = "http"
    lan_addresses: tuple[str, ...] = ()  # by which other machines reach it, if it lets them

    def public_url(self, config: Config) -> str:
        """Return the base URL of links: the configured one, else one that most machines reach."""
        return self.remote_url(config) or local_url(self.host, self.port, self.scheme)

    def remote_url(self, config: Config) -> str:
        """Return the base URL for other machines, such as a phone; empty when they cannot reach it."""
        lan = (make_url(address, self.port, self.scheme) for address in self.lan_addresses)
        return config.settings.public_url or next(lan, "")

    def make_host_policy(self, config: Config) -> HostPolicy:
        return make_host_policy(
            self.host,
            self.port,
            hosts=(
                *config.settings.allowed_hosts,
                *(urlsplit(make_url(address, self.port, self.scheme)).netloc for address in self.lan_addresses),
            ),
            origins=config.settings.allowed_origins,
            proxies=config.settings.trusted_proxies,
            public_url=config.settings.public_url,
        )


def map_appliers(
    yard: Yard,
    chat: Chat,
    clock: Clock,
    place: ListenAddress,
    links: MediaLinks,
    *,
    set_policy: Callable[[HostPolicy], None],
    refresh: Callable[[], None],
) -> dict[str, ApplySettings]:
    """Map each live setting to the function that applies it.

    ``move`` takes over who is near; ``refresh`` looks at the static plugins again.
    """

    def approvals(config: Config) -> None:
        yard.state.approvals.mode = config.settings.approval_mode

    def edge(config: Config) -> None:
        set_policy(place.make_host_policy(config))

    def address(config: Config) -> None:
        links.public_url = place.public_url(config)
        edge(config)

    def providers(config: Config) -> None:
        change_upstreams(chat, yard, config, clock=clock, mask=yard.mask)

    def offer(config: Config) -> None:
        chat.offer_policy.default_mode = config.settings.offer
        chat.offer_policy.lists_aliases = config.settings.model_aliases
        chat.offer_policy.search = read_search(config.settings)

    def zone(config: Config) -> None:
        yard.state.zone = config.zone

    def plugins(config: Config) -> None:
        yard.plugins.use_config(config)
        refresh()

    return {
        "approval_mode": approvals,
        "time_zone": zone,
        **dict.fromkeys(("offer", "model_aliases", "tool_search", "always_offered"), offer),
        "public_url": address,
        **dict.fromkeys(("trusted_folders", "shared_keys", "confinement", "strict_network", "bubblewrap"), plugins),
        **dict.fromkeys(("allowed_hosts", "allowed_origins", "trusted_proxies"), edge),
        **dict.fromkeys(
            (
                "upstream_url",
                "upstream_key",
                "upstream_options",
                "upstream_protocol",
                "upstreams",
                "default_model",
                "fallbacks",
            ),
            providers,
        ),
    }


class SettingsReloader:
    def __init__(self, config: Config, appliers: Mapping[str, ApplySettings], *, poll_s: float = POLL_S) -> None:
        """``appliers``: the function that applies each setting that can change while the server runs."""
        self.config = config  # the last good ones
        self._appliers, self._poll_s = appliers, poll_s
        self._files = tuple(config.home / name for name in (FILE_NAME, HOST_FILE))
        self._turn = asyncio.Lock()  # the last to read has read the newest
        self._seen = b""  # empty: the files may have changed since they were read, so the first check reloads them

    @property
    def live_names(self) -> frozenset[str]:
        """The names of the settings that take effect at once."""
        return frozenset(self._appliers)

    async def reload_now(self) -> None:
        """Reload at once, after the caller has written the files."""
        self._seen = await asyncio.to_thread(_digest, self._files)
        await self._reload()

    async def run(self) -> None:
        """Watch the files until cancelled."""
        while True:
            await asyncio.sleep(self._poll_s)
            now = await asyncio.to_thread(_digest, self._files)
            if now != self._seen:
                self._seen = await self._wait_until_stable(now)
                await self._reload()

    async def _wait_until_stable(self, now: bytes) -> bytes:
        """Return the digest of the files once they have stopped changing."""
        while True:
            await asyncio.sleep(STABLE_S)
            before, now = now, await asyncio.to_thread(_digest, self._files)
            if now == before:
                return now

    async def _reload(self) -> None:
        async with self._turn:
            await self._apply()

    async def _apply(self) -> None:
        old = self.config
        try:
            new = await asyncio.to_thread(reload_config, old)
        except ToolyardError as error:
            _log.warning("the settings have an error, so the last valid ones stay in effect: %s", error)
            return
        self.config = new
        changed = new.settings.list_differences(old.settings)
        for apply in dict.fromkeys(self._appliers[name] for name in changed if name in self._appliers):
            apply(new)
        held = [name for name in changed if name in self._appliers]
        later = [name for name in changed if name not in self._appliers]
        if held:
            _log.info("these settings have changed and are in effect: %s", ", ".join(held))
        if later:
            _log.warning("these settings have changed, but take effect only after a restart: %s", ", ".join(later))


def _digest(files: tuple[Path, ...]) -> bytes:
    """Return a digest of the files; an unreadable one counts as missing."""
    hashed = hashlib.sha256()
    for file in files:
        try:
            content = file.read_bytes()
        except OSError:
            content = b""
        hashed.update(len(content).to_bytes(8, "big") + content)
    return hashed.digest()


def format_serve_command(config: Config) -> str:
    program = "python -m toolyard" if sys.argv[0].endswith("__main__.py") else "toolyard"
    return f"{program} serve --home {shlex.quote(str(config.home))} --project {shlex.quote(str(config.project))}"
