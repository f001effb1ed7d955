"""Refusals of a damaged or foreign state: the problem, and what helps."""

from toolyard.errors import StorageError, StorageIndexDamaged
from toolyard.message import Message


def needs_backup(problem: str) -> StorageError:
    """Return the error for a state that only a backup replaces."""
    return StorageError(
        Message(
            "state.needs_backup",
            "{problem}: put it aside and restore a backup with 'toolyard restore'",
            problem=problem,
        )
    )


def needs_rebuild(problem: str) -> StorageIndexDamaged:
    """Return the error for a state whose indexes can be rebuilt from its records."""
    return StorageIndexDamaged(
        Message("state.needs_rebuild", "{problem}: rebuild it with 'toolyard doctor --repair'", problem=problem)
    )


def without_remedy(error: StorageError) -> str:
    """Return the problem alone if it needs a backup; any other error in full."""
    message = str(error)
    if isinstance(message, Message) and message.code == "state.needs_backup":
        return str(message.params["problem"])
    return message
