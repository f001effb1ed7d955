"""Entries of the audit trail for what a command did."""

import logging
from typing import Any, Final

from toolyard.config import Config
from toolyard.errors import StorageError
from toolyard.hosts.open_yard import open_yard
from toolyard.protocol.audit import Actor
from toolyard.yard.yard import Yard

CLI: Final = "cli"
_log = logging.getLogger(__name__)


def cli_actor(config: Config) -> Actor:
    """Return the person at this command line, with the address that they come from over SSH."""
    return Actor(name=CLI, way=CLI, address=config.environ.get("SSH_CONNECTION", "").partition(" ")[0])


async def record_action(yard: Yard, action: str, **what: Any) -> None:
    """Record an action of a command that works on this host alone, where all hosts can see it."""
    actor = cli_actor(yard.config)
    try:
        if not yard.config.settings.database:
            await yard.audit.record(action, actor, **what)
            return
        async with open_yard(yard.config, serves=False) as shared:
            await shared.audit.record(action, actor, **what)
    except StorageError as error:
        _log.warning("%s is not in the audit trail: %s", action, error)
