"""The documented ways to install Toolyard, on clean Debian systems. ``python -m tests.debian`` measures their times."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.debian.root import SUITES, USER, DebianRoot, make_debian_root
from tests.debian.steps import CLONE, GET_UV, OFFLINE, PIP, PIPX, SERVE, TEST, UV, UVX, Step, add_sources

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"

pytestmark = [
    pytest.mark.requirement("install:clean-debian"),
    pytest.mark.skipif(not SOAK, reason="makes root file systems and installs into them: only in soak"),
]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("debian")


@pytest.fixture(scope="module", params=SUITES)
def root(request: pytest.FixtureRequest, scratch: Path) -> Iterator[DebianRoot]:
    with make_debian_root(request.param, scratch / request.param) as made:
        add_sources(made, scratch)
        yield made


def take(step: Step, root: DebianRoot, user: str) -> str:
    """Run a step and return its output."""
    done = root.run(step.script, user=user, network=step.network)
    assert done.returncode == 0, f"{step.name}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.mark.parametrize("user", ["root", USER])
def test_the_readmes_commands_lead_to_a_tool_call_and_to_a_server_that_needs_no_network(
    root: DebianRoot, user: str
) -> None:
    assert '"status": "success"' in take(CLONE, root, user)
    assert "signed in" in take(SERVE, root, user)


@pytest.mark.parametrize("user", ["root", USER])
def test_the_suite_is_collected_and_a_part_of_it_passes(root: DebianRoot, user: str) -> None:
    take(CLONE, root, user)
    output = take(TEST, root, user)
    assert " tests collected" in output
    assert " passed" in output
    assert user != "root" or " skipped" not in output.splitlines()[-1]  # setup has installed a browser


@pytest.mark.parametrize("user", ["root", USER])
def test_the_wheel_can_be_installed_with_pip_and_pipx_and_then_needs_no_network(root: DebianRoot, user: str) -> None:
    for step in (PIP, PIPX, OFFLINE):
        assert '"status": "success"' in take(step, root, user)


@pytest.mark.parametrize("user", ["root", USER])
def test_the_wheel_can_be_installed_and_run_with_uv(root: DebianRoot, user: str) -> None:
    take(GET_UV, root, user)
    assert '"status": "success"' in take(UV, root, user)
    assert '"status": "success"' in take(UVX, root, user)
