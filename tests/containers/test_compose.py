"""The compose files: their promises, read from them, and both started for real with podman-compose."""

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest
import yaml

from tests.containers.podman import IMAGE, POSTGRES, ROOT, WAIT_S, Podman
from tests.fakes import free_port
from tests.waiting import wait_until_blocking

ONE: Final = "compose.yaml"
CLUSTER: Final = "compose.cluster.yaml"


def read_services(name: str) -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load((ROOT / name).read_text())["services"]
    return services


@pytest.mark.requirement("container:compose", "container:cluster")
@pytest.mark.parametrize(
    ("file", "name"), [(ONE, "toolyard"), (CLUSTER, "server-1"), (CLUSTER, "server-2"), (CLUSTER, "worker")]
)
def test_every_host_is_hardened_and_has_time_to_end(file: str, name: str) -> None:
    service = read_services(file)[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["stop_grace_period"] == "30s"
    assert any(volume.endswith(":/data") for volume in service["volumes"])


@pytest.mark.requirement("container:compose", "container:cluster")
@pytest.mark.parametrize("file", [ONE, CLUSTER])
def test_what_is_published_is_for_this_machine_alone_unless_a_variable_says_otherwise(file: str) -> None:
    ports = [port for service in read_services(file).values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("${TOOLYARD_PUBLISH") and ":-127.0.0.1:600" in port for port in ports)


@pytest.mark.requirement("container:cluster")
def test_the_cluster_has_two_servers_three_workers_and_a_database_of_their_own() -> None:
    services = read_services(CLUSTER)
    assert set(services) == {"keys", "database", "server-1", "server-2", "worker"}
    assert services["worker"]["scale"] == 3
    assert services["database"]["networks"] == ["database"]
    assert "ports" not in services["database"]


class Compose:
    """A compose file in use, under a project name of its own."""

    def __init__(self, podman: Podman, file: str, variables: dict[str, str]) -> None:
        self.podman, self.file = podman, file
        self.environment = {**podman.environment, **variables, "COMPOSE_PROJECT_NAME": f"test-{os.getpid()}"}

    def run(self, *arguments: str) -> str:
        done = self.try_run(*arguments)
        assert done.returncode == 0, f"{arguments}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def try_run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["podman-compose", "--file", self.file, *arguments], cwd=ROOT, env=self.environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WAIT_S, check=False,
        )  # fmt: skip

    def exec(self, service: str, *command: str) -> str:
        return self.run("exec", "-T", service, *command).strip()


@contextmanager
def compose_up(podman: Podman, file: str, **variables: str) -> Iterator[Compose]:
    if shutil.which("podman-compose") is None:
        pytest.skip("needs podman-compose 1.3 or newer (pip install podman-compose)")
    compose = Compose(podman, file, {"TOOLYARD_IMAGE": IMAGE, "POSTGRES_IMAGE": POSTGRES, **variables})
    try:
        compose.run("up", "--detach", "--no-build")
        yield compose
    finally:
        compose.try_run("down", "--volumes", "--timeout", "30")


@dataclass(frozen=True, slots=True)
class Client:
    """A client of one server, at the address where the machine publishes it."""

    port: int
    host: str  # as people type it
    key: str = ""

    def request(self, path: str, body: Any = None) -> Any:
        headers = {"Host": self.host, "Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def wait_until_healthy(self) -> None:
        def is_healthy() -> bool:
            try:
                return bool(self.request("/healthz")["status"] == "ok")
            except OSError:
                return False

        wait_until_blocking(is_healthy)

    def has_tool(self, name: str) -> bool:
        return name in [tool["name"] for tool in self.request("/v1/tools")["data"]]

    def list_called_tools(self) -> list[str]:
        return [call["tool"] for call in self.request("/v1/calls")["data"]]


@pytest.mark.requirement("container:compose")
def test_one_command_starts_a_server_that_is_reached_under_its_public_address(podman: Podman) -> None:
    port = free_port()
    address = {"TOOLYARD_PUBLIC_URL": f"http://localhost:{port}", "TOOLYARD_PUBLISH": f"127.0.0.1:{port}"}
    with compose_up(podman, ONE, **address) as compose:
        visitor = Client(port, f"localhost:{port}")
        visitor.wait_until_healthy()
        owner = replace(visitor, key=compose.exec("toolyard", "toolyard", "config", "show", "--key"))
        assert owner.request("/v1/tools/LS", {"path": "."})["status"] == "success"
        compose.run("restart", "toolyard")
        owner.wait_until_healthy()
        assert owner.list_called_tools() == ["LS"]


@pytest.mark.requirement("container:cluster")
def test_one_command_starts_a_cluster_whose_hosts_know_each_other(podman: Podman) -> None:
    podman.build_postgres()
    ports = free_port(), free_port()
    published = {"TOOLYARD_PUBLISH": f"127.0.0.1:{ports[0]}", "TOOLYARD_PUBLISH_2": f"127.0.0.1:{ports[1]}"}
    with compose_up(podman, CLUSTER, **published) as compose:
        first, second = Client(ports[0], "localhost:6005"), Client(ports[1], "localhost:6006")
        first.wait_until_healthy()
        second.wait_until_healthy()
        key = compose.exec("server-1", "toolyard", "config", "show", "--key")
        first, second = replace(first, key=key), replace(second, key=key)
        assert first.request("/v1/tools/LS", {"path": "."})["status"] == "success"
        assert second.list_called_tools() == ["LS"]
        compose.exec("worker", "toolyard", "plugin", "new", "Greeter", "--folder", "/data/plugins")
        compose.exec("worker", "toolyard", "plugin", "allow", "Greeter", "--yes")
        compose.run("restart", "worker")
        wait_until_blocking(lambda: second.has_tool("Greeter"))
        greeting = second.request("/v1/tools/Greeter", {"name": "Ada"})
        assert "Hello, Ada!" in greeting["text"], greeting
        count = "SELECT count(*) FROM toolyard.records WHERE kind = 'host' AND state = 'up'"
        query = f'PGPASSWORD=$(cat /keys/password) psql --host=/tmp --username=toolyard -Atc "{count}"'
        assert compose.exec("database", "sh", "-c", query) == "5"
