"""The tasks that a call started, by its envelope."""

from toolyard.protocol.envelope import Envelope


def list_task_ids(envelope: Envelope) -> tuple[str, ...]:
    """Return the ids of the tasks that a call started."""
    tasks = envelope.data.get("tasks")
    if envelope.error or not isinstance(tasks, list):
        return ()
    return tuple(str(task["id"]) for task in tasks if isinstance(task, dict) and "id" in task)


def list_background_ids(envelope: Envelope) -> tuple[str, ...]:
    """Return the id of the task that continues after the answer of a call."""
    background = envelope.context.get("background")
    return (str(background["task"]),) if isinstance(background, dict) and "task" in background else ()
