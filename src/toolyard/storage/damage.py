"""Refusals of a damaged or foreign state: the problem, and what helps."""

from pathlib import Path

from toolyard.errors import StorageError, StorageIndexDamaged
from toolyard.message import Message
from toolyard.own_command import OwnCommand


def needs_backup(problem: str, file: Path) -> StorageError:
    """Return the error for a state that only a backup replaces; ``file`` is in its home."""
    return StorageError(
        Message(
            "state.needs_backup",
            "{problem}: put it aside and restore a backup with '{command}'",
            problem=problem,
            command=OwnCommand(file.parent).format("restore BACKUP --force"),
        )
    )


def damaged_record(problem: str) -> StorageError:
    """Return the error for a record that only a backup replaces."""
    return StorageError(
        Message("state.record_needs_backup", "{problem}: restore a backup of this home", problem=problem)
    )


def needs_rebuild(problem: str, file: Path) -> StorageIndexDamaged:
    """Return the error for a state whose indexes can be rebuilt from its records; ``file`` is in its home."""
    return StorageIndexDamaged(
        Message(
            "state.needs_rebuild",
            "{problem}: rebuild it with '{command}'",
            problem=problem,
            command=OwnCommand(file.parent).format("doctor --repair"),
        )
    )


def without_remedy(error: StorageError) -> str:
    """Return the problem alone if it needs a backup; any other error in full."""
    message = str(error)
    if isinstance(message, Message) and message.code in ("state.needs_backup", "state.record_needs_backup"):
        return str(message.params["problem"])
    return message
