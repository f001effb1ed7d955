"""Work that goes on after its call, or begins later: tasks and schedules."""
