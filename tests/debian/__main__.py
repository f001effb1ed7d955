"""``python -m tests.debian [SUITE ...]``: the seconds that each way to install Toolyard takes on a clean Debian, as
root and as an ordinary user. Every step runs twice, so that the second time has a warm package cache."""

import sys
import tempfile
import time
from pathlib import Path

from tests.debian.root import SUITES, USER, make_debian_root
from tests.debian.steps import CLONE, GET_UV, OFFLINE, PIP, PIPX, SERVE, UV, UVX, add_sources


def main(suites: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="toolyard-debian-") as scratch:
        for suite in suites:
            with make_debian_root(suite, Path(scratch) / suite) as root:
                add_sources(root, Path(scratch))
                for user in ("root", USER):
                    root.run(GET_UV.script, user=user)
                    for step in (CLONE, SERVE, PIP, PIPX, OFFLINE, UV, UVX):
                        times = []
                        for _ in range(1 if step in (SERVE, OFFLINE) else 2):
                            began = time.monotonic()
                            done = root.run(step.script, user=user, network=step.network)
                            times.append("failed" if done.returncode else f"{time.monotonic() - began:.1f} s")
                            if done.returncode:
                                print(done.stdout, done.stderr, file=sys.stderr)  # noqa: T201
                        print(f"{suite:9} {user:9} {step.name:32} {', then '.join(times)}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:] or list(SUITES))
