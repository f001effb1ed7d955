"""A wrong host, origin or proxy header is answered with the setting that mends it, in a browser and elsewhere."""

import re
from pathlib import Path

import pytest

from tests.waiting import wait_until
from tests.web.conftest import RunningServer, run_server
from toolyard.web.security.address_page import _TEXTS
from toolyard.web.server.connection import BoundedHttpProtocol

pytestmark = pytest.mark.requirement("proxy:explained")
PAGE = {"Accept": "text/html,application/xhtml+xml"}
SETTINGS = 'public_url = "https://yard.example.org"\ntrusted_proxies = ["127.0.0.1"]'


async def test_an_unknown_host_is_named_with_the_settings_that_let_it_in(running_server: RunningServer) -> None:
    told = await running_server.get("/", headers={"Host": "yard.example"})
    assert (told.status, told.json["error"]["message"]) == (
        421,
        (
            "this server does not know the host name 'yard.example': if it is yours, set public_url = "
            '"http://yard.example", or add the name to allowed_hosts'
        ),
    )
    page = await running_server.get("/", key=None, headers={"Host": "yard.example", **PAGE})
    assert (page.status, page.headers["Content-Type"]) == (421, "text/html; charset=utf-8")
    text = page.body.decode()
    assert "does not know the host name yard.example" in text
    assert "public_url = &quot;http://yard.example&quot;" in text or 'public_url = "http://yard.example"' in text
    assert 'allowed_hosts = ["yard.example"]' in text


async def test_the_page_is_in_chinese_for_a_browser_that_is(running_server: RunningServer) -> None:
    chinese = {"Host": "yard.example", "Accept-Language": "zh-CN,zh;q=0.9", **PAGE}
    text = (await running_server.get("/", key=None, headers=chinese)).body.decode()
    assert "此服务器不认识主机名 yard.example" in text
    assert '<html lang="zh-CN">' in text


async def test_the_page_runs_nothing_and_repeats_nothing_unescaped(running_server: RunningServer) -> None:
    page = await running_server.get("/", key=None, headers={"Host": "<script>alert(1)</script>", **PAGE})
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert b"<script" not in page.body
    assert b"https://yard.example.org" in page.body or b"http://yard.example.org" in page.body  # only an example


async def test_a_proxy_that_is_not_trusted_is_named_with_the_host_that_it_was_asked_for(
    running_server: RunningServer,
) -> None:
    sent = {"Host": "toolyard:6005", "X-Forwarded-Host": "yard.example", "X-Forwarded-Proto": "https"}
    message = (await running_server.get("/", headers=sent)).json["error"]["message"]
    assert message == (
        "a proxy at 127.0.0.1 passed on a request for the host name 'toolyard:6005', which this server does not know: "
        'if it is yours, set public_url = "https://yard.example", and trusted_proxies = ["127.0.0.1"] if the proxy is '
        "yours too"
    )
    page = await running_server.get("/", key=None, headers=sent | PAGE)
    assert (page.status, b'trusted_proxies = ["127.0.0.1"]' in page.body) == (421, True)


async def test_a_form_from_another_address_than_the_server_sees_is_explained(running_server: RunningServer) -> None:
    sent = {"Origin": "https://yard.example", **PAGE}
    page = await running_server.request("POST", "/login", key=None, data={"key": "x"}, headers=sent)
    assert (page.status, b'public_url = "https://yard.example"' in page.body) == (403, True)
    json = await running_server.post("/v1/tools/LS", {}, headers={"Origin": "https://yard.example"})
    assert json.json["error"]["message_code"] == "http.origin_differs"
    other = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    assert (await running_server.post("/v1/tools/LS", {}, headers=other)).json["error"]["message_code"] == (
        "http.origin_not_allowed"
    )


async def test_a_proxy_that_says_http_although_the_public_address_is_https_is_told_without_a_loop(
    tmp_path: Path,
) -> None:
    async with run_server(tmp_path, settings=SETTINGS) as running:
        named = {"Host": "yard.example.org", "X-Forwarded-Proto": "http"}
        page = await running.get("/chat", key=None, headers=named | PAGE)
        assert (page.status, "Location" in page.headers) == (400, False)
        for part in ("X-Forwarded-Proto", "http://yard.example.org/", "https://yard.example.org/"):
            assert part in page.body.decode()
        assert (await running.get("/v1/tools", headers=named)).status == 200  # a program with a key gets its answer
        right = named | {"X-Forwarded-Proto": "https"}
        assert (await running.get("/chat", headers=right | PAGE)).status == 200
        other = await running.get("/chat", key=None, headers=right | PAGE | {"X-Forwarded-Prefix": "/elsewhere"})
        assert (other.status, b"https://yard.example.org/elsewhere/" in other.body) == (400, True)


async def test_a_header_of_a_trusted_proxy_that_cannot_be_understood_is_named(tmp_path: Path) -> None:
    async with run_server(tmp_path, settings=SETTINGS) as running:
        told = await running.get("/v1/tools", headers={"X-Forwarded-Proto": "gopher"})
        assert (told.status, told.json["error"]["message"]) == (
            400,
            (
                "the proxy at 127.0.0.1 sent a header X-Forwarded-Proto that cannot be understood: correct its "
                "configuration"
            ),
        )
        page = await running.get("/", key=None, headers={"Forwarded": "nonsense", **PAGE})
        assert (page.status, b"its header Forwarded is invalid" in page.body) == (400, True)


def test_every_page_is_in_both_languages_with_the_same_lines_to_copy() -> None:
    for texts in _TEXTS.values():
        english, chinese = ([part for part in texts[lang] if part.startswith("=")] for lang in ("en", "zh"))
        assert english == chinese
        english, chinese = (sorted(set(re.findall(r"{\w+}", "".join(texts[lang])))) for lang in ("en", "zh"))
        assert english == chinese


async def test_tls_on_the_plain_port_is_told_in_the_log(
    running_server: RunningServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedHttpProtocol, "is_tls_noted", False)
    await running_server.send_raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64)
    await wait_until(lambda: "speaks TLS to this port, which serves plain HTTP" in caplog.text)
