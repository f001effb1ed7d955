"""``toolyard worker`` with less patience for the tasks of dead hosts, so that tests need not wait for it."""

from toolyard.engine import recovery

recovery.GRACE_S = 1.0  # type: ignore[misc]

from toolyard.cli import main  # noqa: E402

main()
