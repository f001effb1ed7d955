"""The one way to fetch a URL: public addresses only, the checked address only, all of the body or nothing."""

import errno
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workspace.web import CERTIFICATE, Reply, Web, here, loopback_too, serving
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.workspace.safe_fetch import MAX_REDIRECTS, SafeFetch, is_public

PUBLIC = "93.184.216.34"
DENIED, INVALID, FAILED = ErrorCode.ACCESS_DENIED, ErrorCode.INVALID_PARAM, ErrorCode.EXECUTION_ERROR


def never() -> None:
    """A checkpoint that lets everything pass."""


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as running:
        yield running


@pytest.fixture
def fetch() -> SafeFetch:
    return SafeFetch(resolve=here, allowed=loopback_too)


def refusal(fetch: SafeFetch, url: str) -> Failure:
    with pytest.raises(Failure) as caught:
        fetch.fetch(url, never)
    return caught.value


def only_numbers(host: str, port: int) -> list[str]:
    raise AssertionError(f"{host} should not have been looked up")


@pytest.mark.requirement("fileoperator:fetch")
def test_the_whole_body_arrives_with_its_type_and_its_place(web: Web, fetch: SafeFetch) -> None:
    body = bytes(range(256)) * 1000
    web.replies["/a%20b/x.bin?q=1"] = Reply(body, headers={"Content-Type": "image/PNG; x=y"})
    fetched = fetch.fetch(web.url("/a b/x.bin?q=1#part"), never)
    assert (fetched.content, fetched.mime, fetched.source.file_name) == (body, "image/png", "x.bin")
    assert web.asked == [(f"files.example:{web.port}", "/a%20b/x.bin?q=1")]


@pytest.mark.requirement("s:S-70")
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:6005/x",
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://１２７.０.０.１/",
        "http://0/",
        "http://0.0.0.0/",
        "http://10.0.0.1/",
        "http://172.16.0.1/",
        "http://192.168.1.1/",
        "http://100.64.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        "http://[::1]/",
        "http://[::]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[fe80::1%25lo]/",
        "http://[fe80::1]/",
        "http://[fc00::1]/",
        "http://[fec0::1]/",
        "http://[ff02::1]/",
        "https://127.0.0.1/",
    ],
)
def test_an_address_that_is_not_public_is_refused_in_every_spelling(url: str) -> None:
    assert refusal(SafeFetch(resolve=only_numbers), url).code is DENIED


@pytest.mark.requirement("s:S-70")
@pytest.mark.parametrize(
    "address", [PUBLIC, "8.8.8.8", "2606:4700::6810:85e5", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::"]
)
def test_an_address_of_the_public_network_is_allowed(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.requirement("s:S-70")
@pytest.mark.parametrize(
    "host", ["localtest.me", "metadata.google.internal", "localhost", "xn--0.example", "a.example."]
)
@pytest.mark.parametrize(
    "addresses", [["127.0.0.1"], ["169.254.169.254"], ["::1"], [PUBLIC, "127.0.0.1"], ["10.0.0.1", PUBLIC]]
)
def test_a_name_is_refused_when_any_of_its_addresses_is_not_public(host: str, addresses: list[str]) -> None:
    assert refusal(SafeFetch(resolve=lambda name, port: addresses), f"http://{host}/").code is DENIED


@pytest.mark.requirement("s:S-70")
@pytest.mark.parametrize(
    "url",
    [
        "ftp://files.example/a",
        "file:///etc/passwd",
        "gopher://files.example/",
        "data:text/plain,x",
        "//files.example/a",
        "/etc/passwd",
        "files.example/a",
        "http://",
        "http:///a",
        "http://:80/",
        "http://.files.example/",
        "http://files..example/",
        "http://files example/",
        "http://files\0.example/",
        "http://[::1",
        "http://files.example:99999/",
        "http://files.example:x/",
        "http://user@files.example/",
        "http://user:secret@files.example/",
        "http://files.example\\@evil.example/",
        "",
    ],
)
def test_what_is_no_plain_http_url_is_refused_and_not_repeated(url: str) -> None:
    failure = refusal(SafeFetch(resolve=only_numbers), url)
    assert failure.code is INVALID
    assert "secret" not in failure.message


@pytest.mark.requirement("s:S-71")
def test_a_name_is_resolved_once_and_only_the_checked_address_is_reached(web: Web) -> None:
    answers = iter([["127.0.0.1"], ["203.0.113.9"]])
    web.replies["/x"] = Reply(b"hello")
    fetch = SafeFetch(resolve=lambda name, port: next(answers), allowed=loopback_too)
    assert fetch.fetch(web.url("/x"), never).content == b"hello"
    assert next(answers) == ["203.0.113.9"], "the second answer was never asked for"


@pytest.mark.requirement("s:S-71")
def test_the_name_is_kept_for_the_certificate_and_the_host_header(tmp_path: Path) -> None:
    def trusting() -> ssl.SSLContext:
        return ssl.create_default_context(cadata=CERTIFICATE)

    with serving(tmp_path) as web:
        web.replies["/x"] = Reply(b"hello")
        fetch = SafeFetch(resolve=here, allowed=loopback_too, tls=trusting)
        assert fetch.fetch(web.url("/x", scheme="https"), never).content == b"hello"
        assert web.asked == [(f"files.example:{web.port}", "/x")]
        other = refusal(fetch, web.url("/x", "other.example", "https"))
        unknown = refusal(SafeFetch(resolve=here, allowed=loopback_too), web.url("/x", scheme="https"))
    assert [failure.code for failure in (other, unknown)] == [FAILED, FAILED]
    assert "certificate is not valid" in other.message
    assert len(web.asked) == 1


@pytest.mark.requirement("s:S-70")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed(web: Web, fetch: SafeFetch, status: int) -> None:
    web.replies["/old"] = Reply(status=status, headers={"Location": "/new"})
    web.replies["/new"] = Reply(b"here")
    fetched = fetch.fetch(web.url("/old"), never)
    assert (fetched.content, fetched.source.url) == (b"here", web.url("/new"))


@pytest.mark.requirement("s:S-70")
@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("http://169.254.169.254/", DENIED),
        ("http://inside.example/", DENIED),
        ("//inside.example/x", DENIED),
        ("file:///etc/passwd", INVALID),
        ("http://user:pw@files.example/", INVALID),
        ("http://[", INVALID),
    ],
)
def test_every_redirect_is_checked_again(web: Web, location: str, code: ErrorCode) -> None:
    names = {"files.example": "127.0.0.1", "inside.example": "10.0.0.1"}
    fetch = SafeFetch(resolve=lambda name, port: [names[name]], allowed=loopback_too)
    web.replies["/x"] = Reply(status=302, headers={"Location": location})
    assert refusal(fetch, web.url("/x")).code is code


@pytest.mark.requirement("s:S-70")
def test_more_redirects_than_allowed_are_an_error(web: Web, fetch: SafeFetch) -> None:
    web.replies["/loop"] = Reply(status=302, headers={"Location": "/loop"})
    assert refusal(fetch, web.url("/loop")).code is FAILED
    assert len(web.asked) == MAX_REDIRECTS + 1


@pytest.mark.requirement("s:S-70")
@pytest.mark.parametrize("sized", [True, False])
def test_a_body_that_is_too_large_is_not_kept(web: Web, sized: bool) -> None:
    web.replies["/fits"] = Reply(b"x" * 1000, sized=sized)
    web.replies["/large"] = Reply(b"x" * 1001, sized=sized)
    fetch = SafeFetch(max_bytes=1000, resolve=here, allowed=loopback_too)
    assert len(fetch.fetch(web.url("/fits"), never).content) == 1000
    assert refusal(fetch, web.url("/large")).reason is Reason.TOO_LARGE


@pytest.mark.requirement("s:S-70")
@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"part", declared=100, hangs="body"),
        Reply(b"part", sized=False, hangs="body"),
        Reply(headers={"X-Slow": "yes"}, hangs="headers"),
        Reply(declared=100_000, hangs="drips"),
        Reply(sized=False, hangs="drips"),
    ],
)
def test_a_server_that_does_not_end_is_left_at_the_time_limit(web: Web, reply: Reply) -> None:
    web.replies["/slow"] = reply
    fetch = SafeFetch(max_s=0.3, resolve=here, allowed=loopback_too)
    assert refusal(fetch, web.url("/slow")).code is ErrorCode.TIMEOUT


@pytest.mark.requirement("fileoperator:fetch")
def test_a_body_that_breaks_off_is_an_error(web: Web, fetch: SafeFetch) -> None:
    web.replies["/broken"] = Reply(b"part", declared=100)
    failure = refusal(fetch, web.url("/broken"))
    assert (failure.code, "broke off in the middle" in failure.message) == (FAILED, True)


@pytest.mark.requirement("fileoperator:fetch")
@pytest.mark.parametrize(("status", "code"), [(404, ErrorCode.NOT_FOUND), (403, FAILED), (500, FAILED), (304, FAILED)])
def test_any_answer_but_ok_is_an_error(web: Web, fetch: SafeFetch, status: int, code: ErrorCode) -> None:
    web.replies["/x"] = Reply(b"sorry", status=status)
    assert refusal(fetch, web.url("/x")).code is code


@pytest.mark.requirement("fileoperator:fetch")
@pytest.mark.parametrize("word", ["identity", "Identity", ""])
def test_content_that_is_said_not_to_be_packed_is_taken_as_it_is(web: Web, fetch: SafeFetch, word: str) -> None:
    web.replies["/x"] = Reply(b"plain", headers={"Content-Encoding": word})
    assert fetch.fetch(web.url("/x"), never).content == b"plain"


@pytest.mark.requirement("fileoperator:fetch")
def test_packed_content_is_refused(web: Web, fetch: SafeFetch) -> None:
    web.replies["/x"] = Reply(b"\x1f\x8b", headers={"Content-Encoding": "gzip"})
    assert refusal(fetch, web.url("/x")).code is FAILED


@pytest.mark.requirement("fileoperator:fetch")
def test_a_refused_connection_an_unknown_name_and_a_stranger_are_errors(fetch: SafeFetch) -> None:
    def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(errno.ENOENT, "no such name")

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        refused = refusal(fetch, f"http://files.example:{listening.getsockname()[1]}/")
    lost = refusal(SafeFetch(resolve=unknown), "http://files.example/")
    nowhere = refusal(SafeFetch(resolve=lambda name, port: []), "http://files.example/")
    assert [failure.code for failure in (refused, lost, nowhere)] == [FAILED] * 3
    assert ("refused" in refused.message, "not known" in lost.message) == (True, True)


@pytest.mark.requirement("s:S-70")
def test_a_proxy_of_the_environment_is_not_used(web: Web, fetch: SafeFetch, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    web.replies["/x"] = Reply(b"direct")
    assert fetch.fetch(web.url("/x"), never).content == b"direct"


@pytest.mark.requirement("runner:cancel")
def test_a_checkpoint_stops_a_fetch_that_goes_on(web: Web, fetch: SafeFetch) -> None:
    looked = []

    def stop() -> None:
        looked.append(1)
        if len(looked) > 2:
            raise Failure(Reason.CANCELLED, "Stopped.")

    web.replies["/x"] = Reply(b"x" * 1_000_000)
    with pytest.raises(Failure, match="Stopped"):
        fetch.fetch(web.url("/x"), stop)
