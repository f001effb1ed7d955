"""A confirmed restore: applied when the server starts, before anything else of the home is read."""

import logging

from toolyard.config import Config
from toolyard.engine.clock import Clock
from toolyard.storage.restore import apply_scheduled
from toolyard.web.settings_change import reload_config

_log = logging.getLogger(__name__)


def apply_pending_restore(config: Config, clock: Clock) -> Config:
    """Apply a pending restore and return the settings, reloaded if there was one. Raises StorageError, ConfigError."""
    aside = config.home / f"before-restore-{clock.now().strftime('%Y%m%d-%H%M%S')}"
    contents = apply_scheduled(config.home, aside)
    if contents is None:
        return config
    _log.warning("a backup was restored: the previous files are in %s", contents.aside)
    return reload_config(config)
