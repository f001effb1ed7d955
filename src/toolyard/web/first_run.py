"""Whether somebody should be led through the first steps: no model provider is set, and nobody said that it is fine."""

from typing import Final

from toolyard.config import Config
from toolyard.plugins.state_file import StateFile

FILE_NAME: Final = "setup.json"


def is_first_run(config: Config) -> bool:
    """Reads a small file of the home."""
    settings = config.settings
    has_provider = settings.upstream_url or settings.upstream_key or settings.upstreams
    return not has_provider and "done" not in StateFile(config.home / FILE_NAME).read()


def finish(config: Config, at: float) -> None:
    """From now on nobody is led any more. Raises ConfigError."""
    StateFile(config.home / FILE_NAME).update(lambda value: value.update({"done": at}))
