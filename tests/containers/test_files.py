"""The files that containers are made of, without building one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.requirement("plugin:usual-limits")


@pytest.mark.parametrize("name", ["compose.yaml", "compose.cluster.yaml"])
def test_every_host_in_a_container_has_limits_of_memory_and_processes(name: str) -> None:
    text = (ROOT / name).read_text()
    hosts = text.count("no-new-privileges:true")
    assert (
        hosts
        == text.count("mem_limit: ${TOOLYARD_MEMORY:-4g}")
        == text.count("pids_limit: ${TOOLYARD_TASKS:-4096}")
        == 1
    )


def test_images_of_others_are_named_by_their_digest() -> None:
    text = "".join((ROOT / name).read_text() for name in ("Dockerfile", "compose.yaml", "compose.cluster.yaml"))
    images = re.findall(r"docker\.io/library/[^\s}]+", text)
    assert len(images) == 2
    assert all(re.fullmatch(r"docker\.io/library/\w+:[\w.-]+@sha256:[0-9a-f]{64}", image) for image in images)
