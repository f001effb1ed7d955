"""The settings that hold while a server runs as soon as they have changed, and what becomes of each.

A chat that runs stays with the model provider it began with.
"""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from toolyard.app import Yard
from toolyard.config import Config
from toolyard.engine.clock import Clock
from toolyard.gateway.assemble import change_upstreams
from toolyard.gateway.chat import Chat
from toolyard.gateway.media_link import MediaLinks
from toolyard.web.head import Neighbourhood, neighbourhood
from toolyard.web.listening import url_of
from toolyard.web.reloading import Take


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server listens."""

    host: str
    port: int

    def public_url(self, config: Config) -> str:
        """The address for links: as the settings have it, else the one that this machine reaches."""
        return config.settings.public_url or url_of(self.host, self.port)

    def near(self, config: Config) -> Neighbourhood:
        return neighbourhood(
            self.host,
            self.port,
            hosts=(*config.settings.allowed_hosts, urlsplit(self.public_url(config)).netloc),
            origins=config.settings.allowed_origins,
            proxies=config.settings.trusted_proxies,
        )


def live(
    yard: Yard,
    chat: Chat,
    clock: Clock,
    place: Place,
    links: MediaLinks,
    *,
    move: Callable[[Neighbourhood], None],
    refresh: Callable[[], None],
) -> dict[str, Take]:
    """For each of these settings who is told the new ones.

    ``move`` takes over who is near; ``refresh`` looks at the static plugins again.
    """

    def approvals(config: Config) -> None:
        yard.approvals.mode = config.settings.approval_mode

    def edge(config: Config) -> None:
        move(place.near(config))

    def address(config: Config) -> None:
        links.public_url = place.public_url(config)
        edge(config)

    def providers(config: Config) -> None:
        change_upstreams(chat, config, clock=clock, mask=yard.mask)

    def offer(config: Config) -> None:
        chat.offering.usual, chat.offering.lists_aliases = config.settings.offer, config.settings.model_aliases

    def plugins(config: Config) -> None:
        yard.plugins.take(config)
        refresh()

    return {
        "approval_mode": approvals,
        **dict.fromkeys(("offer", "model_aliases"), offer),
        "public_url": address,
        **dict.fromkeys(("trusted_folders", "shared_keys"), plugins),
        **dict.fromkeys(("allowed_hosts", "allowed_origins", "trusted_proxies"), edge),
        **dict.fromkeys(("upstream_url", "upstream_key", "upstream_options", "upstreams", "fallbacks"), providers),
    }
