"""The proxy of plugins with a list of hosts, asked by curl, wget, Python's clients and Node, and by attackers."""

import os
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.plugins.proxies import LOOPS, LoopFactory, RunningProxy, raw_server, read_all, running_handler, running_proxy
from tests.programs import find_program
from tests.waiting import wait_until_blocking
from tests.workspace.web import CERTIFICATE, Reply, Web, here, serving
from toolyard.plugins.process.network_proxy import NetworkProxy, proxy_variables
from toolyard.plugins.process.network_services import PortForward
from toolyard.plugins.process.ports import ConnectionLimits

PUBLIC = "93.184.216.34"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
NODE_TUNNEL = """
const [proxy, target, path] = process.argv.slice(1);
const http = require("http");
http.request({ host: "127.0.0.1", port: proxy, method: "CONNECT", path: target })
  .on("connect", (response, socket) => {
    if (response.statusCode !== 200) { console.log(response.statusCode); return socket.destroy(); }
    const agent = new http.Agent({}); agent.createConnection = () => socket;
    http.get({ agent, host: target.split(":")[0], path }, (answer) => {
      answer.on("data", (data) => console.log(answer.statusCode, String(data)));
      answer.on("end", () => socket.destroy());
    });
  }).end();
"""


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as running:
        running.replies["/a?b=1"] = Reply(b"hello")
        yield running


@pytest.fixture(params=LOOPS, ids=["asyncio", "uvloop"])
def proxy(request: pytest.FixtureRequest, web: Web) -> Iterator[RunningProxy]:
    """A proxy to the web server under the name files.example; every name leads to this machine."""
    hosts = [f"files.example:{web.port}", f"127.0.0.1:{web.port}"]
    with running_proxy(hosts, loop_factory=request.param) as running:
        yield running


def curl(proxy: RunningProxy, *words: str) -> tuple[str, str]:
    """Return the status of the last response, or of the proxy's if it refuses a tunnel, and the body."""
    command = [
        find_program("curl"),
        "-sS",
        "-q",
        "--noproxy",
        "",
        "-x",
        proxy.url,
        "-w",
        "\n%{http_code} %{http_connect}",
        *words,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    body, _, codes = done.stdout.rpartition("\n")
    answer, tunnel = codes.split()
    return (tunnel if answer == "000" else answer), body


def status_of(answer: bytes) -> int:
    return int(answer.split()[1])


@pytest.mark.requirement("network:proxy")
def test_curl_gets_a_page_with_and_without_a_tunnel(proxy: RunningProxy, web: Web) -> None:
    assert curl(proxy, web.url("/a?b=1")) == ("200", "hello")
    assert curl(proxy, "--proxytunnel", web.url("/a?b=1")) == ("200", "hello")
    assert curl(proxy, web.url("/a?b=1", host="FILES.Example.")) == ("200", "hello")
    assert curl(proxy, web.url("/a?b=1", host="127.0.0.1")) == ("200", "hello")
    assert proxy.refused == []


@pytest.mark.requirement("network:proxy")
def test_tls_passes_from_end_to_end(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(CERTIFICATE)
    body = os.urandom(3_000_000)
    with (
        serving(tmp_path) as web,
        running_proxy([f"files.example:{web.port}", f"localhost:{web.port}"]) as proxy,
    ):
        web.replies["/big"] = Reply(body)
        url = web.url("/big", scheme="https")
        got = requests.get(url, proxies={"https": proxy.url}, verify=str(tmp_path / "ca.pem"), timeout=60)
        assert got.content == body
        assert curl(proxy, "--cacert", str(tmp_path / "ca.pem"), "-o", str(tmp_path / "out"), url)[0] == "200"
        assert (tmp_path / "out").read_bytes() == body
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({"https": proxy.url}),
            urllib.request.HTTPSHandler(context=ssl.create_default_context(cadata=CERTIFICATE)),
        )
        with opener.open(url, timeout=60) as answer:
            assert answer.read() == body


@pytest.mark.requirement("network:proxy")
@pytest.mark.parametrize("loop_factory", LOOPS, ids=["asyncio", "uvloop"])
def test_a_request_with_an_https_uri_goes_out_with_tls_and_only_to_the_right_certificate(
    loop_factory: LoopFactory, tmp_path: Path
) -> None:
    def trusting() -> ssl.SSLContext:
        return ssl.create_default_context(cadata=CERTIFICATE)

    with serving(tmp_path) as web:
        web.replies["/a"] = Reply(b"hello")
        hosts = [f"*.example:{web.port}", f"localhost:{web.port}"]
        raw = f"GET https://files.example:{web.port}/a HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        with running_proxy(hosts, tls=trusting, loop_factory=loop_factory) as proxy:
            assert proxy.send(raw).endswith(b"hello")
            assert status_of(proxy.send(raw.replace(b"files", b"other"))) == 502
            assert status_of(proxy.send(raw.replace(b".example", b".evil"))) == 403
        with running_proxy(hosts, loop_factory=loop_factory) as proxy:
            assert status_of(proxy.send(raw)) == 502
        assert web.asked == [(f"files.example:{web.port}", "/a")]


@pytest.mark.requirement("network:proxy")
def test_the_variables_of_the_environment_lead_programs_to_the_proxy(proxy: RunningProxy, web: Web) -> None:
    clean = {"PATH": os.environ["PATH"], **proxy_variables(proxy.port)}
    script = "import urllib.request, sys; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
    commands = [["curl", "-sS", "-q"], ["python3", "-c", script], ["wget", "-q", "-O", "-"]]
    answers = {
        command[0]: subprocess.check_output([*command, web.url("/a?b=1")], env=clean, text=True, timeout=60)
        for command in commands
        if shutil.which(command[0])
    }
    assert {name: printed.strip() for name, printed in answers.items()} == dict.fromkeys(answers, "hello")
    assert len(web.asked) == len(answers)


@pytest.mark.requirement("network:proxy")
def test_the_variables_name_the_proxy_in_both_cases_and_spare_the_loopback() -> None:
    values = proxy_variables(8123)
    proxied = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    assert {values[name] for name in proxied} == {"http://127.0.0.1:8123"}
    assert values["NO_PROXY"] == values["no_proxy"] == "127.0.0.1,localhost,::1"
    assert values["NODE_USE_ENV_PROXY"] == "1"


@pytest.mark.requirement("network:proxy")
@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_node_gets_a_page_through_a_tunnel_and_a_403_for_another_host(proxy: RunningProxy, web: Web) -> None:
    def run(target: str) -> str:
        command = ["node", "-e", NODE_TUNNEL, str(proxy.port), target, "/a?b=1"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()

    assert run(f"files.example:{web.port}") == "200 hello"
    assert run(f"other.example:{web.port}") == "403"


@pytest.mark.requirement("network:proxy")
def test_requests_posts_bodies_of_known_and_unknown_length() -> None:
    with (
        raw_server(OK, ends_with=b"the end") as sized,
        raw_server(OK, ends_with=b"\r\n0\r\n\r\n") as chunked,
        running_proxy([f"localhost:{sized.port}", f"localhost:{chunked.port}"]) as proxy,
    ):
        proxies = {"http": proxy.url}
        body = b"x" * 1_000_000 + b"the end"
        assert requests.post(f"http://localhost:{sized.port}/", body, proxies=proxies, timeout=60).text == "ok"
        assert sized.received[0].endswith(body)
        assert f"\r\nContent-Length: {len(body)}\r\n".lower().encode() in sized.received[0].lower()
        parts = iter([b"first", b"second"])
        assert requests.post(f"http://localhost:{chunked.port}/", parts, proxies=proxies, timeout=60).text == "ok"
        head, _, rest = chunked.received[0].partition(b"\r\n\r\n")
        assert b"transfer-encoding: chunked" in head.lower()
        assert rest == b"5\r\nfirst\r\n6\r\nsecond\r\n0\r\n\r\n"


@pytest.mark.requirement("network:proxy")
def test_a_refusal_names_the_host_and_the_field_of_the_manifest(proxy: RunningProxy, web: Web) -> None:
    status, text = curl(proxy, web.url("/a", host="other.example"))
    assert (status, web.asked) == ("403", [])
    assert f"other.example:{web.port}" in text
    assert "permissions.network" in text
    assert curl(proxy, "https://other.example/") == ("403", "")
    assert curl(proxy, "--head", "http://other.example/")[0] == "403"
    assert [(host, port) for host, port, _ in proxy.refused] == [
        ("other.example", web.port),
        ("other.example", 443),
        ("other.example", 80),
    ]
    assert "not declared" in proxy.refused[0][2]


@pytest.mark.requirement("network:proxy")
def test_a_large_upload_to_a_host_that_is_not_declared_still_gets_the_reason(proxy: RunningProxy) -> None:
    proxies = {"http": proxy.url}
    answer = requests.post("http://other.example/", b"x" * 2_000_000, proxies=proxies, timeout=60)
    assert (answer.status_code, "permissions.network" in answer.text) == (403, True)


@pytest.mark.requirement("network:proxy")
def test_a_port_that_is_not_declared_is_refused(proxy: RunningProxy) -> None:
    for target in ("files.example:22", "files.example:80", "127.0.0.1:22"):
        assert status_of(proxy.send(f"CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())) == 403


@pytest.mark.requirement("network:proxy")
def test_a_server_that_does_not_answer_and_a_name_that_is_unknown_are_502() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]

    def resolve(host: str, port: int) -> list[str]:
        if host == "unknown.example":
            raise socket.gaierror("no such name")
        return [] if host == "empty.example" else here(host, port)

    names = [f"{name}.example:{port}" for name in ("unknown", "empty", "closed")]
    with running_proxy([*names, f"localhost:{port}"], resolve=resolve) as proxy:
        assert [curl(proxy, f"http://{name}/")[0] for name in names] == ["502"] * 3
        assert [curl(proxy, f"https://{name}/")[0] for name in names] == ["502"] * 3
        assert proxy.refused == []


# Names and addresses


@pytest.mark.requirement("network:proxy:addresses")
@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.0.0.1"],
        ["169.254.169.254"],
        ["::1"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["2002:7f00:1::"],
        ["fe80::1%lo"],
        ["0.0.0.0"],
        [PUBLIC, "192.168.0.1"],
        ["192.168.0.1", PUBLIC],
    ],
)
def test_a_declared_name_with_an_address_that_is_neither_public_nor_declared_is_refused(addresses: list[str]) -> None:
    hosts = ["files.example", "*.files.example", "10.0.0.2", "0.0.0.0/32", "127.0.0.1:8080"]
    with running_proxy(hosts, resolve=lambda host, port: addresses) as proxy:
        status, text = curl(proxy, "http://files.example/")
        assert (status, "private address" in text) == ("403", True)
        assert curl(proxy, "https://a.files.example/")[0] == "403"
        assert len(proxy.refused) == 2


@pytest.mark.requirement("network:proxy:addresses")
@pytest.mark.parametrize("private", ["127.0.0.1", "127.0.0.0/8", "localhost", "::ffff:127.0.0.1"])
def test_a_declared_name_may_lead_to_a_private_address_that_is_declared(private: str, web: Web) -> None:
    entry = f"[{private}]:{web.port}" if private.startswith("::") else f"{private}:{web.port}"
    with running_proxy([f"*.example:{web.port}", entry]) as proxy:
        assert curl(proxy, web.url("/a?b=1")) == ("200", "hello")


@pytest.mark.requirement("network:proxy:addresses")
def test_a_name_is_looked_up_once_and_only_the_checked_address_is_reached(web: Web) -> None:
    answers = [["127.0.0.1"], ["203.0.113.9"], ["127.0.0.1"]]
    looked_up: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        looked_up.append(host)
        return answers.pop(0)

    hosts = [f"files.example:{web.port}", f"127.0.0.1:{web.port}"]
    with running_proxy(hosts, resolve=rebinding) as proxy:
        assert curl(proxy, web.url("/a?b=1")) == ("200", "hello")
    assert looked_up == ["files.example"]


@pytest.mark.requirement("network:proxy:addresses")
@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        PUBLIC,
    ],
)
def test_an_address_is_no_way_around_a_list_of_names(host: str, web: Web) -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise AssertionError(f"{host} should not have been looked up")

    with running_proxy([f"files.example:{web.port}"], resolve=resolve) as proxy:
        connect = f"CONNECT {host}:{web.port} HTTP/1.1\r\nHost: files.example\r\n\r\n"
        get = f"GET http://{host}:{web.port}/a HTTP/1.1\r\nHost: files.example\r\n\r\n"
        assert [status_of(proxy.send(raw.encode())) for raw in (connect, get)] == [403, 403]
    assert web.asked == []


@pytest.mark.requirement("network:proxy:addresses")
@pytest.mark.parametrize("host", ["127.1", "2130706433", "[::ffff:127.0.0.1]", "127.0.0.1."])
def test_every_spelling_of_a_declared_address_is_that_address(host: str, web: Web) -> None:
    with running_proxy([f"127.0.0.1:{web.port}"]) as proxy:
        raw = f"GET http://{host}:{web.port}/a?b=1 HTTP/1.1\r\nHost: x\r\n\r\n"
        assert proxy.send(raw.encode()).endswith(b"hello")
    assert web.asked == [(f"127.0.0.1:{web.port}", "/a?b=1")]


@pytest.mark.requirement("network:proxy:addresses")
def test_an_ipv6_address_that_is_declared_is_reached() -> None:
    try:
        with raw_server(OK, host="::1") as server, running_proxy([f"[::1]:{server.port}"]) as proxy:
            assert curl(proxy, "-g", f"http://[::1]:{server.port}/") == ("200", "ok")
            assert f"host: [::1]:{server.port}\r\n".encode() in server.received[0].lower()
    except OSError:
        pytest.skip("this machine has no IPv6")


@pytest.mark.requirement("network:proxy:addresses")
def test_the_next_address_is_tried_when_the_first_does_not_answer(web: Web) -> None:
    with running_proxy(
        [f"files.example:{web.port}", f"localhost:{web.port}"], resolve=lambda host, port: ["127.0.0.2", "127.0.0.1"]
    ) as proxy:
        assert curl(proxy, web.url("/a?b=1")) == ("200", "hello")


# Requests


@pytest.mark.requirement("network:proxy:http")
def test_the_host_header_is_that_of_the_uri(proxy: RunningProxy, web: Web) -> None:
    raw = f"GET {web.url('/a?b=1')} HTTP/1.1\r\nHost: other.example\r\n\r\n"
    assert proxy.send(raw.encode()).endswith(b"hello")
    assert web.asked == [(f"files.example:{web.port}", "/a?b=1")]


@pytest.mark.requirement("network:proxy:http")
def test_a_redirect_to_a_host_that_is_not_declared_ends_there(proxy: RunningProxy, web: Web) -> None:
    web.replies["/go"] = Reply(status=302, headers={"Location": f"http://other.example:{web.port}/a?b=1"})
    web.replies["/back"] = Reply(status=302, headers={"Location": "/a?b=1"})
    assert curl(proxy, "-L", web.url("/go"))[0] == "403"
    assert requests.get(web.url("/go"), proxies={"http": proxy.url}, timeout=60).status_code == 403
    assert curl(proxy, "-L", web.url("/back")) == ("200", "hello")
    assert [host for host, _ in web.asked] == [f"files.example:{web.port}"] * 4


@pytest.mark.requirement("network:proxy:http")
def test_a_second_request_on_the_same_connection_is_never_forwarded(proxy: RunningProxy, web: Web) -> None:
    first = f"GET {web.url('/a?b=1')} HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n"
    second = f"GET {web.url('/secret', host='other.example')} HTTP/1.1\r\nHost: files.example\r\n\r\n"
    answer = proxy.send((first + second).encode())
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in answer.lower()
    assert web.asked == [(f"files.example:{web.port}", "/a?b=1")]


@pytest.mark.requirement("network:proxy:http")
def test_headers_between_client_and_proxy_are_not_passed_on() -> None:
    reply = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive, X-Hop\r\nKeep-Alive: timeout=5\r\n"
        b"X-Hop: 1\r\nX-End: 2\r\nProxy-Authenticate: Basic\r\n\r\nok"
    )
    with raw_server(reply) as server, running_proxy([f"localhost:{server.port}"]) as proxy:
        raw = (
            f"GET http://localhost:{server.port}?q HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic c2VjcmV0\r\n"
            "Proxy-Connection: keep-alive\r\nConnection: X-Private, Upgrade, Host\r\nUpgrade: h2c\r\nTE: trailers\r\n"
            "X-Private: 1\r\nAuthorization: Bearer t\r\nX-Kept: 2\r\n\r\n"
        )
        answer = proxy.send(raw.encode()).lower()
    lines = server.received[0].decode().lower().splitlines()
    assert lines[0] == "get /?q http/1.1"
    assert sorted(lines[1:-1]) == [
        "authorization: bearer t",
        "connection: close",
        f"host: localhost:{server.port}",
        "x-kept: 2",
    ]
    head = answer.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]
    assert sorted(head) == [b"connection: close", b"content-length: 2", b"x-end: 2"]


@pytest.mark.requirement("network:proxy:http")
@pytest.mark.parametrize(
    "headers",
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: +5\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "X: a\rb\r\n",
        "X: a\0b\r\n",
        " folded\r\n",
    ],
)
def test_a_request_whose_end_could_be_read_in_two_ways_is_bad(headers: str, proxy: RunningProxy, web: Web) -> None:
    raw = f"POST {web.url('/a')} HTTP/1.1\r\nHost: x\r\n{headers}\r\n0\r\n\r\nGET /secret HTTP/1.1\r\nHost: x\r\n\r\n"
    assert status_of(proxy.send(raw.encode())) in (400, 501)
    assert web.asked == []


@pytest.mark.requirement("network:proxy:http")
def test_the_length_of_a_body_cannot_be_hidden_from_the_server() -> None:
    with (
        raw_server(OK, ends_with=b"GET /secret HTTP/1.1\r\n\r\n") as server,
        running_proxy([f"localhost:{server.port}"]) as proxy,
    ):
        body = "GET /secret HTTP/1.1\r\n\r\n"
        raw = (
            f"POST http://localhost:{server.port}/ HTTP/1.1\r\nHost: x\r\nConnection: Content-Length\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        )
        assert proxy.send(raw.encode()).endswith(b"ok")
    assert f"content-length: {len(body)}\r\n".encode() in server.received[0].lower()


@pytest.mark.requirement("network:proxy:http")
@pytest.mark.parametrize(
    "line",
    [
        "GET /a HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "GET https://user@files.example/ HTTP/1.1",
        "GET ftp://files.example/ HTTP/1.1",
        "GET http:// HTTP/1.1",
        "GET http:///a HTTP/1.1",
        "GET http://files.example@other.example/ HTTP/1.1",
        "GET http://user:secret@files.example/ HTTP/1.1",
        "GET http://files.example\\@other.example/ HTTP/1.1",
        "GET http://files.example%2f.other.example/ HTTP/1.1",
        "GET http://files%2eexample/ HTTP/1.1",
        "GET http://files.example:/ HTTP/1.1",
        "GET http://files.example:99999/ HTTP/1.1",
        "GET http://files.example:80:80/ HTTP/1.1",
        "GET http://files..example/ HTTP/1.1",
        "GET http://files.example/#part HTTP/1.1",
        "GET http://[fe80::1%25lo]/ HTTP/1.1",
        "GET http://[127.0.0.1]/ HTTP/1.1",
        "GET http://[::1/ HTTP/1.1",
        "CONNECT files.example HTTP/1.1",
        "CONNECT files.example: HTTP/1.1",
        "CONNECT files.example:0 HTTP/1.1",
        "CONNECT files.example:443/path HTTP/1.1",
        "CONNECT user@files.example:443 HTTP/1.1",
        "CONNECT other.example:443@files.example:443 HTTP/1.1",
        "CONNECT http://files.example:443 HTTP/1.1",
        "CONNECT ::1:443 HTTP/1.1",
        "CONNECT files.example:443 extra HTTP/1.1",
        "GET http://files.example/\x80 HTTP/1.1",
        "\x16\x03\x01 not HTTP at all",
    ],
)
def test_what_is_no_request_to_a_proxy_is_400(line: str) -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise AssertionError(f"{host} should not have been looked up")

    with running_proxy(["files.example"], resolve=resolve) as proxy:
        assert status_of(proxy.send(line.encode("latin-1") + b"\r\nHost: files.example\r\n\r\n")) == 400


@pytest.mark.requirement("network:proxy:http")
def test_a_tunnel_request_with_a_body_is_400(proxy: RunningProxy, web: Web) -> None:
    raw = f"CONNECT files.example:{web.port} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
    assert status_of(proxy.send(raw.encode())) == 400


@pytest.mark.requirement("network:proxy:http")
def test_bytes_sent_before_the_tunnel_is_open_arrive(proxy: RunningProxy, web: Web) -> None:
    raw = f"CONNECT files.example:{web.port} HTTP/1.1\r\nHost: x\r\n\r\nGET /a?b=1 HTTP/1.0\r\nHost: inner\r\n\r\n"
    answer = proxy.send(raw.encode())
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"hello")
    assert web.asked == [("inner", "/a?b=1")]


@pytest.mark.requirement("network:proxy:http")
def test_a_response_that_breaks_off_does_not_look_whole(proxy: RunningProxy, web: Web) -> None:
    web.replies["/half"] = Reply(b"half", declared=1000)
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        requests.get(web.url("/half"), proxies={"http": proxy.url}, timeout=60)
    web.replies["/open"] = Reply(b"until the end", sized=False)
    assert curl(proxy, web.url("/open")) == ("200", "until the end")


@pytest.mark.requirement("network:proxy:http")
@pytest.mark.parametrize("reply", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 101 Switching Protocols\r\n\r\n"])
def test_a_server_that_sends_no_response_is_502(reply: bytes) -> None:
    with raw_server(reply) as server, running_proxy([f"localhost:{server.port}"]) as proxy:
        assert curl(proxy, f"http://localhost:{server.port}/")[0] == "502"


@pytest.mark.requirement("network:proxy:http")
def test_a_client_that_waits_for_100_continue_gets_it_from_the_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        received: list[bytes] = []

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                received.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                received.append(connection.recv(65536))
                connection.sendall(OK)

        thread = threading.Thread(target=serve)
        thread.start()
        with running_proxy([f"localhost:{port}"]) as proxy:
            words = [
                "-H",
                "Expect: 100-continue",
                "--expect100-timeout",
                "60",
                "-d",
                "body",
                f"http://localhost:{port}/",
            ]
            assert curl(proxy, *words) == ("200", "ok")
        thread.join()
    assert b"100-continue" in received[0]
    assert received[1] == b"body"


# Bounds


@pytest.mark.requirement("network:proxy:bounds")
@pytest.mark.parametrize("line", ["X: " + "y" * 100_000, "\r\n".join(f"X-{n}: {'y' * 100}" for n in range(1000))])
def test_a_head_over_64_kib_is_refused(line: str, proxy: RunningProxy, web: Web) -> None:
    raw = f"GET {web.url('/a?b=1')} HTTP/1.1\r\nHost: x\r\n{line}\r\n\r\n"
    assert status_of(proxy.send(raw.encode())) == 431
    assert web.asked == []


@pytest.mark.requirement("network:proxy:bounds")
def test_a_head_of_60_kib_passes(proxy: RunningProxy, web: Web) -> None:
    raw = f"GET {web.url('/a?b=1')} HTTP/1.1\r\nHost: x\r\nX: {'y' * 60_000}\r\n\r\n"
    assert proxy.send(raw.encode()).endswith(b"hello")


@pytest.mark.requirement("network:proxy:bounds")
@pytest.mark.parametrize("loop_factory", LOOPS, ids=["asyncio", "uvloop"])
def test_a_client_that_does_not_finish_its_request_is_answered_408(loop_factory: LoopFactory, web: Web) -> None:
    with running_proxy(
        [f"localhost:{web.port}"], limits=ConnectionLimits(head_s=0.05, linger_s=0.05), loop_factory=loop_factory
    ) as proxy:
        assert status_of(proxy.send(b"GET http://files.exa")) == 408


@pytest.mark.requirement("network:proxy:bounds")
@pytest.mark.parametrize("loop_factory", LOOPS, ids=["asyncio", "uvloop"])
def test_a_tunnel_and_a_response_that_fall_silent_are_ended(loop_factory: LoopFactory, web: Web) -> None:
    web.replies["/hangs"] = Reply(b"some", declared=100, hangs="body")
    web.replies["/mute"] = Reply(hangs="headers")
    with running_proxy(
        [f"localhost:{web.port}"], limits=ConnectionLimits(idle_s=0.2, linger_s=0.05), loop_factory=loop_factory
    ) as proxy:
        tunnel = f"CONNECT localhost:{web.port} HTTP/1.1\r\nHost: x\r\n\r\n"
        assert proxy.send(tunnel.encode()).startswith(b"HTTP/1.1 200 ")
        get = f"GET {web.url('/hangs', host='localhost')} HTTP/1.1\r\nHost: x\r\n\r\n"
        with proxy.connect() as client:
            client.sendall(get.encode())
            assert read_all(client).endswith(b"some")


@pytest.mark.requirement("network:proxy:bounds")
def test_a_tunnel_that_carries_bytes_one_way_only_is_not_silent(web: Web) -> None:
    web.replies["/drips"] = Reply(hangs="drips", sized=False)
    with running_proxy([f"localhost:{web.port}"], limits=ConnectionLimits(idle_s=5.0)) as proxy, proxy.connect() as one:
        one.sendall(f"GET {web.url('/drips', host='localhost')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        received = b""
        while received.count(b".") < 50:
            data = one.recv(65536)
            assert data
            received += data


@pytest.mark.requirement("network:proxy:bounds")
def test_one_connection_too_many_is_503_and_there_is_room_again_afterwards(web: Web) -> None:
    with running_proxy([f"localhost:{web.port}"], limits=ConnectionLimits(connections=2, linger_s=0.05)) as proxy:
        tunnel = f"CONNECT localhost:{web.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        with proxy.connect() as first, proxy.connect() as second:
            for client in (first, second):
                client.sendall(tunnel)
                assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
            with proxy.connect() as third:
                assert status_of(read_all(third)) == 503
        wait_until_blocking(lambda: curl(proxy, web.url("/a?b=1", host="localhost")) == ("200", "hello"))


@pytest.mark.requirement("network:proxy:bounds")
def test_a_look_up_that_hangs_is_given_up() -> None:
    released = threading.Event()

    def hanging(host: str, port: int) -> list[str]:
        released.wait(60)
        return [PUBLIC]

    try:
        with running_proxy(["files.example"], resolve=hanging, limits=ConnectionLimits(connect_s=0.05)) as proxy:
            assert [curl(proxy, "http://files.example/")[0] for _ in range(6)] == ["502"] * 6
    finally:
        released.set()


@pytest.mark.requirement("network:proxy:bounds")
@pytest.mark.parametrize("loop_factory", LOOPS, ids=["asyncio", "uvloop"])
def test_a_client_that_does_not_read_stops_the_server_from_sending(loop_factory: LoopFactory) -> None:
    """What a stopped reader leaves in memory is bounded: the server's own send blocks."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with running_proxy([f"localhost:{port}"], loop_factory=loop_factory) as proxy, proxy.connect() as client:
            client.sendall(f"CONNECT localhost:{port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            server, _ = listener.accept()
            with server:
                server.settimeout(1.0)
                with pytest.raises(TimeoutError):
                    server.sendall(b"x" * 64 * 2**20)
                assert client.recv(65536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.requirement("network:proxy:bounds")
def test_clients_that_vanish_in_the_middle_leave_nothing_behind(proxy: RunningProxy, web: Web) -> None:
    url = web.url("/a?b=1")
    tunnel = f"CONNECT files.example:{web.port} HTTP/1.1\r\nHost: x\r\n\r\nGET /a?b=1 HTTP/1.0\r\n\r\n"
    upload = f"POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nsome"
    plain, bad = f"GET {url} HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://no.example/ HTTP/1.1\r\n\r\n"
    for request in (plain, tunnel, upload, bad) * 10:
        with proxy.connect() as client:
            client.sendall(request.encode())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset at the end
    assert curl(proxy, url) == ("200", "hello")


# Forwarded ports


@pytest.mark.requirement("network:ports", "network:proxy:bounds")
@pytest.mark.parametrize("loop_factory", LOOPS, ids=["asyncio", "uvloop"])
def test_a_forwarded_port_leads_to_its_one_address(loop_factory: LoopFactory, web: Web) -> None:
    with running_handler(PortForward("127.0.0.1", web.port).handle, loop_factory) as port:
        assert requests.get(f"http://127.0.0.1:{port}/a?b=1", timeout=60, proxies={}).text == "hello"
    full = PortForward("127.0.0.1", web.port, limits=ConnectionLimits(connections=0))
    with running_handler(full.handle, loop_factory) as port, socket.create_connection(("127.0.0.1", port), 60) as one:
        assert read_all(one) == b""


@pytest.mark.requirement("network:ports")
def test_a_forwarded_port_whose_address_is_closed_ends_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        closed = gone.getsockname()[1]
    with (
        running_handler(PortForward("127.0.0.1", closed).handle) as port,
        socket.create_connection(("127.0.0.1", port), 60) as client,
    ):
        assert read_all(client) == b""


@pytest.mark.requirement("network:ports")
def test_a_client_that_ends_its_side_first_still_gets_the_answer() -> None:
    with (
        raw_server(b"answer", ends_with=b"never") as server,
        running_handler(PortForward("127.0.0.1", server.port).handle) as port,
        socket.create_connection(("127.0.0.1", port), 60) as client,
    ):
        client.sendall(b"all")
        client.shutdown(socket.SHUT_WR)
        assert read_all(client) == b"answer"
        assert server.received == [b"all"]


@pytest.mark.requirement("network:hosts")
def test_a_list_with_an_entry_that_is_no_host_makes_no_proxy() -> None:
    with pytest.raises(ValueError, match=r"permissions\.network"):
        NetworkProxy(["https://api.example.com"])
