"""A backup that waits in a home is put in place at the start of its server, before anything of the home is read."""

import logging

from toolyard.config import Config
from toolyard.engine.clock import Clock
from toolyard.storage.restore import finish
from toolyard.web.settings_change import read_again

_log = logging.getLogger(__name__)


def brought_back(config: Config, clock: Clock) -> Config:
    """The settings of the home, which are others after a restore. Raises StorageError and ConfigError."""
    aside = config.home / f"before-restore-{clock.now().strftime('%Y%m%d-%H%M%S')}"
    contents = finish(config.home, aside)
    if contents is None:
        return config
    _log.warning("a backup was put in place: what was there before is in %s", contents.aside)
    return read_again(config)
