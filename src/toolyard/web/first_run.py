"""Whether somebody should be led through the first steps: no model provider is set, and nobody said that it is fine."""

from typing import Final

from toolyard.config import Config
from toolyard.plugins.state_file import StateFile

FILE_NAME: Final = "setup.json"
_PROVIDERS = ("upstream_url", "upstream_key", "upstreams")


def is_first_run(config: Config) -> bool:
    """Reads a small file of the home."""
    return not any(config[name] for name in _PROVIDERS) and "done" not in StateFile(config.home / FILE_NAME).read()


def finish(config: Config, at: float) -> None:
    """From now on nobody is led any more. Raises ConfigError."""
    StateFile(config.home / FILE_NAME).change(lambda value: value.update({"done": at}))
