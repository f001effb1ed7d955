"""The engine: registry, runner, approvals, tasks, schedules and the journal."""
