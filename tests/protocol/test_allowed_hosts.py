"""The entries of permissions.network and what they allow."""

import ipaddress

import pytest

from toolyard.protocol.manifests.permissions import AllowedHosts, normalize_name

pytestmark = pytest.mark.requirement("network:hosts")


def allows(entry: str, host: str, port: int = 443) -> bool:
    allowed = AllowedHosts.parse([entry])
    try:
        return allowed.allows_address(ipaddress.ip_address(host), port)
    except ValueError:
        name = normalize_name(host)
        return name is not None and allowed.allows_name(name, port)


@pytest.mark.parametrize(
    ("entry", "host", "port"),
    [
        ("api.example.com", "api.example.com", 443),
        ("api.example.com", "api.example.com", 80),
        ("API.Example.com.", "api.EXAMPLE.com", 443),
        ("api.example.com", "api.example.com.", 443),
        ("api.example.com:8443", "api.example.com", 8443),
        ("*.example.com", "a.example.com", 443),
        ("*.example.com", "a.b.example.com", 443),
        ("*.example.com:22", "a.example.com", 22),
        ("bücher.example", "xn--bcher-kva.example", 443),
        ("*.BÜCHER.example", "a.xn--bcher-kva.example", 443),
        ("xn--strae-oqa.example", "XN--STRAE-OQA.example", 443),
        ("192.168.1.5", "192.168.1.5", 80),
        ("192.168.1.5:8080", "192.168.1.5", 8080),
        ("10.0.0.0/8", "10.1.2.3", 443),
        ("10.0.0.0/8:22", "10.1.2.3", 22),
        ("::1", "::1", 443),
        ("[fd00::5]:8443", "fd00::5", 8443),
        ("[fd00::/8]:8443", "fd12::5", 8443),
        ("fd00::/8", "fd12::5", 443),
        ("::ffff:192.168.1.5", "192.168.1.5", 443),
        ("localhost", "localhost", 80),
        ("localhost:6005", "127.0.0.1", 6005),
        ("localhost:6005", "::1", 6005),
        ("nas", "nas", 80),
    ],
)
def test_an_entry_allows_what_it_names(entry: str, host: str, port: int) -> None:
    assert allows(entry, host, port)


@pytest.mark.parametrize(
    ("entry", "host", "port"),
    [
        ("api.example.com", "example.com", 443),
        ("api.example.com", "x.api.example.com", 443),
        ("api.example.com", "api.example.com", 22),
        ("api.example.com:8443", "api.example.com", 443),
        ("api.example.com", "api.example.com..", 443),
        ("*.example.com", "example.com", 443),
        ("*.example.com", "evilexample.com", 443),
        ("*.example.com", ".example.com", 443),
        ("192.168.1.5", "192.168.1.6", 443),
        ("192.168.1.5", "192.168.1.5", 8080),
        ("10.0.0.0/8", "11.0.0.1", 443),
        ("0.0.0.0/0", "0.0.0.0", 443),
        ("::/0", "::", 443),
        ("0.0.0.0/0", "::1", 443),
        ("224.0.0.0/4", "224.0.0.1", 443),
        ("localhost", "127.0.0.1", 6005),
        ("localhost", "10.0.0.1", 443),
        ("localhost", "x.localhost", 443),
    ],
)
def test_an_entry_allows_nothing_else(entry: str, host: str, port: int) -> None:
    assert not allows(entry, host, port)


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "*",
        "*.",
        "a.*.example.com",
        "**.example.com",
        "https://api.example.com",
        "api.example.com/path",
        "user@api.example.com",
        "api.example.com:",
        "api.example.com:0",
        "api.example.com:65536",
        "api.example.com:http",
        "api.example.com:*",
        "api..example.com",
        "api example.com",
        "api.example.com\n",
        ("a" * 64) + ".example",
        "127.1",
        "2130706433",
        "0x7f.1",
        "*.0.0.1",
        "10.0.0.1/8",
        "10.0.0.0/33",
        "[10.0.0.1]",
        "[::1",
        "::1%lo",
        "fe80::1%eth0",
        "１２７.0.0.1",
        "straße.example",
        "a。example",
    ],
)
def test_what_is_no_host_is_an_error_that_names_the_entry_and_the_field(entry: str) -> None:
    with pytest.raises(ValueError, match=r"permissions\.network") as caught:
        AllowedHosts.parse(["fine.example", entry])
    assert repr(entry) in str(caught.value)
