"""The settings that take effect without a restart, and the function that applies each.

A running chat stays with the model provider it began with.
"""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from toolyard.config import Config
from toolyard.engine.clock import Clock
from toolyard.gateway.chat import Chat
from toolyard.gateway.media.media_link import MediaLinks
from toolyard.web.listener import local_url, make_url
from toolyard.web.security.request_head import HostPolicy, make_host_policy
from toolyard.web.settings_reloader import ApplySettings
from toolyard.yard.chat import change_upstreams
from toolyard.yard.yard import Yard


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
        yard.approvals.mode = config.settings.approval_mode

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

    def zone(config: Config) -> None:
        yard.zone = config.zone

    def plugins(config: Config) -> None:
        yard.plugins.use_config(config)
        refresh()

    return {
        "approval_mode": approvals,
        "time_zone": zone,
        **dict.fromkeys(("offer", "model_aliases"), offer),
        "public_url": address,
        **dict.fromkeys(("trusted_folders", "shared_keys", "confinement", "strict_network", "bubblewrap"), plugins),
        **dict.fromkeys(("allowed_hosts", "allowed_origins", "trusted_proxies"), edge),
        **dict.fromkeys(
            ("upstream_url", "upstream_key", "upstream_options", "upstreams", "default_model", "fallbacks"), providers
        ),
    }
