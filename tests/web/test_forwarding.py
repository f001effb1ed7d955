"""Forwarding headers: what a proxy says about a request, and whom the server believes."""

import pytest

from tests.web.conftest import RunningServer, run_server
from toolyard.web.security.request_head import Forwarding, make_host_policy, read_forwarding

pytestmark = pytest.mark.requirement("proxy:headers")


def read(**headers: str) -> Forwarding:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return read_forwarding(lambda name: sent.get(name, ""))


def test_of_several_values_the_last_is_that_of_the_nearest_proxy() -> None:
    assert read(
        x_forwarded_for="9.9.9.9, 10.0.0.1:4711, [2001:db8::1]:80",
        x_forwarded_proto="http, WSS",
        x_forwarded_host="evil.example, Yard.example.org:8443",
        x_forwarded_prefix="/yard/",
    ) == Forwarding(
        scheme="https",
        host="yard.example.org:8443",
        prefix="/yard",
        addresses=("9.9.9.9", "10.0.0.1", "2001:db8::1"),
    )


def test_the_standard_header_is_read_as_well() -> None:
    header = 'for=192.0.2.43, for="[2001:db8::1]:4711";proto=https;Host="yard.example.org";by=_hidden'
    assert read(forwarded=header) == Forwarding(
        scheme="https", host="yard.example.org", addresses=("192.0.2.43", "2001:db8::1")
    )
    assert read(forwarded="for=unknown, for=_secret").addresses == ("", "")


def test_the_standard_header_does_not_count_beside_the_others() -> None:
    """Most proxies set the others and pass this one on as the client sent it."""
    assert read(forwarded="for=9.9.9.9;host=evil.example", x_forwarded_for="10.0.0.1") == Forwarding(
        addresses=("10.0.0.1",)
    )


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ({"x_forwarded_proto": "gopher"}, "X-Forwarded-Proto"),
        ({"x_forwarded_host": "a b"}, "X-Forwarded-Host"),
        ({"x_forwarded_host": "me@yard.example"}, "X-Forwarded-Host"),
        ({"x_forwarded_prefix": "//evil.example"}, "X-Forwarded-Prefix"),
        ({"x_forwarded_prefix": '/"><script>'}, "X-Forwarded-Prefix"),
        ({"forwarded": "for"}, "Forwarded"),
        ({"forwarded": 'for="unfinished'}, "Forwarded"),
        ({"forwarded": "proto=gopher"}, "Forwarded"),
    ],
)
def test_what_cannot_be_understood_is_named(headers: dict[str, str], name: str) -> None:
    assert read(**headers) == Forwarding(invalid=name)


def test_a_proxy_is_trusted_by_its_network_also_where_ipv4_is_written_as_ipv6() -> None:
    policy = make_host_policy("::", 6005, proxies=["10.0.0.0/8", "2001:db8::/32"])
    trusted = ("10.1.2.3", "::ffff:10.1.2.3", "2001:db8::5")
    assert [policy.is_trusted_proxy(one) for one in trusted] == [True, True, True]
    assert [policy.is_trusted_proxy(one) for one in ("11.0.0.1", "", "localhost")] == [False, False, False]


async def test_the_audit_trail_and_the_log_have_the_address_of_the_client(
    tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "toolyard.web")
    settings = 'trusted_proxies = ["127.0.0.1"]'
    async with run_server(tmp_path_factory.mktemp("proxied"), settings=settings) as running:
        for number, header in enumerate(("X-Forwarded-For", "Forwarded")):
            value = f"10.5.0.{number}" if header == "X-Forwarded-For" else f"for=10.5.0.{number}"
            sent = await running.request("POST", "/login", key=None, data={"key": running.key}, headers={header: value})
            assert sent.status == 303
            assert await newest_address(running) == f"10.5.0.{number}"
    logged = {getattr(record, "fields", {}).get("address") for record in caplog.records}
    assert {"10.5.0.0", "10.5.0.1"} <= logged


async def newest_address(running: RunningServer) -> str:
    return str((await running.get("/v1/audit")).json["data"][0]["address"])


async def test_a_proxy_that_is_not_trusted_is_named_in_the_log_once(
    running_server: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        await running_server.get("/healthz", headers={"X-Forwarded-For": "10.0.0.1"})
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [warning for warning in warnings if "trusted_proxies" in warning] == [
        (
            "127.0.0.1 sends forwarding headers such as X-Forwarded-For, which are ignored: if it is your proxy, add "
            "it to trusted_proxies, so that limits and the audit trail see its clients"
        )
    ]
