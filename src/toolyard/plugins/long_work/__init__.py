"""Work of plugins beyond one call: tasks that go on after their answer, and values that are fetched on a schedule."""
