"""The first run: no model provider is configured, and nobody has finished or dismissed the setup."""

from typing import Final

from toolyard.config import Config
from toolyard.plugins.state_file import StateFile

FILE_NAME: Final = "setup.json"


def is_first_run(config: Config) -> bool:
    """Return whether the setup should be shown. Reads a small file of the home."""
    settings = config.settings
    has_provider = settings.upstream_url or settings.upstream_key or settings.upstreams
    return not has_provider and "done" not in StateFile(config.home / FILE_NAME).read()


def mark_finished(config: Config, at: float) -> None:
    """Record that the setup is finished. Raises ConfigError."""
    StateFile(config.home / FILE_NAME).update(lambda value: value.update({"done": at}))
