"""``toolyard worker`` with less patience for the tasks of dead hosts, and that says more often that it lives, so that
tests need not wait for it."""

import tests.postgres  # noqa: F401 its patience
from toolyard.engine import recovery
from toolyard.hosts import directory, lease

recovery.GRACE_S = 1.0  # type: ignore[misc]
lease.HEARTBEAT_S, lease.LEASE_S, directory.POLL_S = 0.5, 3.5, 0.25  # type: ignore[misc]

from toolyard.cli import main  # noqa: E402

main()
