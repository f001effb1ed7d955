"""The image, built and started for real: its user, its files, its health, its end."""

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode

import pytest

from tests.containers.podman import IMAGE, ROOT, Podman
from tests.fakes import free_port
from tests.waiting import wait_until_blocking

HARDENED = ("--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges")
SECCOMP_PROFILE = Path("/usr/share/containers/seccomp.json")
BUILD_TOOLS = ("gcc", "cc", "ld", "make", "hatchling", "tini-static")


class Container:
    """A running server in a container, reached as a person would reach it."""

    def __init__(self, podman: Podman, port: int, name: str) -> None:
        self.podman, self.url, self.name = podman, f"http://localhost:{port}", name

    def read_log(self) -> str:
        done = self.podman.try_run("logs", self.name)
        return done.stdout + done.stderr

    def wait_until_it_serves(self) -> None:
        def serves() -> bool:
            assert self.podman.inspect(self.name)["State"]["Running"], self.read_log()
            return "sign in: " in self.read_log()

        wait_until_blocking(serves)

    def exec(self, *command: str) -> str:
        return self.podman.run("exec", self.name, *command)

    def request(self, path: str, body: Any = None, key: str = "") -> Any:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data, headers), timeout=60) as answer:
            return json.load(answer)


@contextmanager
def start(podman: Podman, *options: str, name: str = "toolyard", home: str = "home") -> Iterator[Container]:
    port = free_port()
    volume, published = f"--volume={home}:/data", f"--publish=127.0.0.1:{port}:6005"
    address = f"--env=TOOLYARD_PUBLIC_URL=http://localhost:{port}"
    podman.run("run", "--detach", f"--name={name}", "--stop-timeout=30", volume, published, address, *options, IMAGE)
    container = Container(podman, port, name)
    try:
        container.wait_until_it_serves()
        yield container
    finally:
        podman.try_run("rm", "--force", "--time=1", name)


@pytest.mark.requirement("container:image")
@pytest.mark.parametrize("options", [(), HARDENED], ids=["default", "hardened"])
def test_a_container_is_reached_signed_in_to_and_called_under_its_public_address(
    podman: Podman, options: tuple[str, ...]
) -> None:
    with start(podman, *options, home=f"reached-{len(options)}") as server:
        assert server.request("/healthz")["status"] == "ok"
        key = server.exec("toolyard", "config", "show", "--key")
        written = server.request("/v1/tools/Write", {"path": "hello.txt", "content": "from outside"}, key)
        assert written["status"] == "success", written
        echo = server.request("/v1/tools/SciCalculator", {"expression": "6*7"}, key)
        assert "42" in echo["text"], echo
        assert server.exec("cat", "/project/hello.txt") == "from outside"
        link = re.findall(r"sign in: (\S+)", server.read_log())[-1]
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        with browser.open(f"{server.url}/login", urlencode({"link": link.partition("link=")[2]}).encode()) as page:
            assert page.status == 200
        with browser.open(f"{server.url}/v1/session") as session:
            assert json.load(session)["csrf"]
        with pytest.raises(HTTPError, match="421"):
            urllib.request.urlopen(
                urllib.request.Request(f"{server.url}/healthz", headers={"Host": "evil.example"}), timeout=60
            )


@pytest.mark.requirement("container:image")
def test_nothing_in_the_container_runs_as_root_and_a_read_only_root_is_enough(podman: Podman) -> None:
    with start(podman, *HARDENED, home="restricted") as server:
        users = {line.split()[0] for line in podman.run("top", server.name, "user", "pid", "args").splitlines()[1:]}
        assert users == {"toolyard"}
        assert server.exec("id", "-u") == "1000"
        status = server.exec("cat", "/proc/1/status")
        assert re.search(r"CapBnd:\s+0+\n", status)
        assert re.search(r"NoNewPrivs:\s+1", status)
        assert server.exec("cat", "/proc/1/comm") == "tini"
        assert podman.try_run("exec", server.name, "touch", "/opt/toolyard/new").returncode == 1
        assert server.exec("stat", "--format=%a %u", "/data", "/data/key") == "700 1000\n600 1000"


@pytest.mark.requirement("container:image")
def test_the_home_survives_a_new_container_and_what_the_old_one_was_killed_in_is_settled(podman: Podman) -> None:
    with start(podman, home="kept", name="first") as server:
        key = server.exec("toolyard", "config", "show", "--key")
        server.request("/v1/tools/LS", {"path": "."}, key)
        podman.run("kill", "first")
    with start(podman, home="kept", name="second") as server:
        assert server.exec("toolyard", "config", "show", "--key") == key
        (call,) = server.request("/v1/calls", key=key)["data"]
        assert (call["tool"], call["state"]) == ("LS", "success")


@pytest.mark.requirement("container:image")
def test_stopping_ends_the_server_gracefully_and_its_health_is_seen_from_outside(podman: Podman) -> None:
    with start(podman, *HARDENED, home="stopped") as server:
        podman.run("healthcheck", "run", server.name)
        podman.run("stop", server.name)
        state = podman.inspect(server.name)["State"]
        assert (state["ExitCode"], state["Running"]) == (0, False)
        assert "Shutting down" in server.read_log()


@pytest.mark.requirement("container:image")
def test_the_health_check_fails_where_no_server_answers(podman: Podman) -> None:
    failed = podman.try_run("run", "--rm", "--entrypoint=healthcheck", IMAGE)
    assert failed.returncode == 1
    assert "the server does not answer" in failed.stderr


@pytest.mark.requirement("container:image")
def test_the_image_has_no_build_tools_and_runs_commands(podman: Podman) -> None:
    look = "; ".join(f"command -v {name}" for name in BUILD_TOOLS)
    assert podman.run("run", "--rm", "--entrypoint=/bin/sh", IMAGE, "-c", f"{look}; true") == ""
    python = "--entrypoint=/opt/toolyard/bin/python"
    assert podman.try_run("run", "--rm", python, IMAGE, "-c", "import hatchling").returncode == 1
    version = subprocess.check_output([sys.executable, "-m", "toolyard", "--version"], text=True)
    assert podman.run("run", "--rm", IMAGE, "--version") == version.strip()
    assert json.loads(podman.run("run", "--rm", IMAGE, "call", "LS"))["status"] == "success"


def describe_confinement(checks: str) -> list[str]:
    return [check["detail"] for check in json.loads(checks) if check["name"] == "confinement"]


@pytest.mark.requirement("container:image")
@pytest.mark.parametrize("options", [(), HARDENED], ids=["default", "hardened"])
def test_plugins_are_confined_in_a_container_as_far_as_on_the_machine_itself(
    podman: Podman, options: tuple[str, ...]
) -> None:
    doctor = [sys.executable, "-m", "toolyard", "doctor", "--json"]
    outside = subprocess.run(doctor, capture_output=True, text=True, check=False).stdout
    inside = podman.try_run("run", "--rm", *options, IMAGE, "doctor", "--json").stdout
    assert describe_confinement(inside) == describe_confinement(outside)


@pytest.mark.requirement("container:image")
def test_where_a_container_may_not_make_namespaces_what_is_missing_is_named(podman: Podman) -> None:
    """Docker's profile of system calls leaves them out; this is Podman's without them."""
    profile = json.loads(SECCOMP_PROFILE.read_text())
    for rule in profile["syscalls"]:
        rule["names"] = [name for name in rule["names"] if name not in ("unshare", "setns", "mount", "clone3")]
    file = podman.scratch / "seccomp.json"
    file.write_text(json.dumps(profile))
    options = (*HARDENED, f"--security-opt=seccomp={file}")
    checks = podman.try_run("run", "--rm", *options, IMAGE, "doctor", "--json").stdout
    everywhere = podman.try_run("run", "--rm", *HARDENED, IMAGE, "doctor", "--json").stdout
    level, *missing = describe_confinement(checks)
    assert "'files'" in level
    no_hosts = "plugins that declare a list of hosts cannot have a network of their own here"
    known = describe_confinement(everywhere)[1:]
    assert [line for line in missing if line not in known and "a view of the files" not in line] == [no_hosts]
    assert any("a view of the files" in line for line in missing)


@pytest.mark.requirement("container:lock")
def test_the_image_is_locked_to_the_tested_versions_without_build_tools() -> None:
    def read(name: str) -> dict[str, str]:
        lines = (ROOT / "requirements" / name).read_text().splitlines()
        pins = (re.match(r"([\w.-]+)(?:\[[\w,-]+\])?==([^ ;]+)", line) for line in lines)
        return {pin[1]: pin[2] for pin in pins if pin}

    image, build, tested, run = read("image.txt"), read("build.txt"), read("dev.txt"), read("run.txt")
    assert image.items() | build.items() <= tested.items()
    assert {"asyncpg", "pgqueuer", "fastapi"} <= image.keys()
    assert run.keys() - image.keys() == build.keys() - image.keys()
    assert "hatchling" in build.keys() - image.keys()


@pytest.mark.requirement("container:lock")
def test_a_build_context_never_has_secrets_or_state() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {".home", ".env", "**/config.env", ".git"} <= set(ignored)
    for name in ("requirements", "src", "plugins", "pyproject.toml", "README.md", "LICENSE", "container"):
        assert name not in ignored
        assert Path(ROOT / name).exists()
