"""A connection to a model provider that fails: the plain cause, the advice, and the details in the log."""

import asyncio
import errno
import json
import logging
import re
import socket
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from tests.gateway.serving import ME, chat_body, gateway
from tests.gateway.upstream import Script, provider, streamed
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.providers.diagnosis import explain_connection_error
from toolyard.gateway.providers.probe import probe
from toolyard.message import Message

INTERNALS = re.compile(r"ssl:|Errno|\[|Error|<|Cannot connect to host|payload|Not enough data")
KEY: Any = SimpleNamespace(host="models.example.org", port=443, ssl=True, is_ssl=True)
REQUEST: Any = SimpleNamespace(real_url="https://models.example.org/v1")


def certificate(code: int) -> aiohttp.ClientConnectorCertificateError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code = code
    return aiohttp.ClientConnectorCertificateError(KEY, error)


def no_connection(number: int) -> aiohttp.ClientConnectorError:
    return aiohttp.ClientConnectorError(KEY, OSError(number, "Connect call failed ('127.0.0.1', 6391)"))


ERRORS: list[tuple[Exception, str, str]] = [
    (no_connection(errno.ECONNREFUSED), "connection_refused", "hint_network"),
    (no_connection(errno.ETIMEDOUT), "connection_timed_out", "hint_network"),
    (no_connection(errno.ENETUNREACH), "network_unreachable", "hint_network_unreachable"),
    (no_connection(errno.EHOSTUNREACH), "network_unreachable", "hint_network_unreachable"),
    (no_connection(errno.EPERM), "connection_blocked", "hint_connection_blocked"),
    (no_connection(errno.ENOBUFS), "no_connection", "hint_network"),
    (aiohttp.ClientConnectorDNSError(KEY, socket.gaierror(-2, "Name or service not known")), "unknown_host",
     "hint_unknown_host"),
    (certificate(18), "certificate_untrusted", "hint_certificate_untrusted"),
    (certificate(10), "certificate_expired", "hint_certificate_expired"),
    (certificate(62), "certificate_of_other_host", "hint_certificate_of_other_host"),
    (aiohttp.ClientConnectorSSLError(KEY, ssl.SSLError(1, "wrong version number")), "tls_failed", "hint_tls_failed"),
    (aiohttp.ClientProxyConnectionError(KEY, OSError(111, "refused")), "proxy_unreachable", "hint_proxy"),
    (aiohttp.ClientHttpProxyError(REQUEST, (), status=407, message="x"), "proxy_needs_password", "hint_proxy_password"),
    (aiohttp.ClientHttpProxyError(REQUEST, (), status=403, message="x"), "proxy_refused", "hint_proxy_refused"),
    (aiohttp.ClientResponseError(REQUEST, (), status=400, message="Bad status line"), "not_http", "hint_not_http"),
    (aiohttp.ServerDisconnectedError(), "connection_cut", "hint_cut"),
    (aiohttp.ClientOSError(errno.ECONNRESET, "Connection reset by peer"), "connection_cut", "hint_cut"),
    (aiohttp.ClientPayloadError("Response payload is not completed: <TransferEncodingError: 400>"), "connection_cut",
     "hint_cut"),
    (aiohttp.ConnectionTimeoutError("Connection timeout to host x"), "timed_out", "hint_timed_out"),
    (TimeoutError(), "timed_out", "hint_timed_out"),
    (aiohttp.InvalidURL("http://[x", "odd"), "invalid_address", "hint_invalid_address"),
    (ValueError("Error of a library"), "no_connection", "hint_network"),
]  # fmt: skip


@pytest.mark.requirement("chat:fault-words")
@pytest.mark.parametrize(("error", "reason", "advice"), ERRORS)
def test_an_error_of_a_library_is_a_plain_cause_with_advice(
    error: Exception, reason: str, advice: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "toolyard")
    cause = explain_connection_error(error, "https://models.example.org/v1", "far")
    assert (cause.reason.code, cause.advice.code) == (f"provider.{reason}", f"provider.{advice}")
    assert not INTERNALS.search(f"{cause.reason} {cause.advice}")
    assert f"the model provider far at models.example.org: {type(error).__name__}: {error}" in caplog.text


@pytest.mark.requirement("chat:fault-words")
async def test_chat_and_the_test_of_a_provider_say_the_same_of_a_refused_connection(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        tested = await probe(url, None)
        async with gateway(tmp_path, [], settings={"upstream_url": url}) as one:
            run = await one.chat.complete(ClientRequest(chat_body("Hi", stream=True), caller=ME))
            contact = one.chat.contacts()[""]
    message = json.loads(run.body)["error"]["message"]
    assert tested.error == "it cannot be reached: Connection refused"
    assert message == f"The model provider 'upstream' cannot be reached: Connection refused. {tested.hint}"
    assert "start the model server, and check its port" in tested.hint
    assert (contact.error, isinstance(contact.error, Message)) == (message, True)


@pytest.mark.requirement("chat:fault-words")
async def test_a_server_that_speaks_no_tls_and_one_that_speaks_no_http_are_told_apart() -> None:
    async def say_nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"220 ready for mail\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(say_nonsense, "127.0.0.1", 0)
    async with server:
        place = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        assert (await probe(f"http://{place}", None)).error == "it cannot be reached: what it sent is not HTTP"
    async with provider([]) as one:
        tested = await probe(one.url.replace("http:", "https:"), None)
    assert tested.error == "it cannot be reached: no TLS connection could be made"
    assert "http:// or https://" in tested.hint


@pytest.mark.requirement("chat:fault-words")
@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_that_is_cut_says_so_in_plain_words(
    tmp_path: Path, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "toolyard")
    kind = "text/event-stream" if stream else "application/json"
    pieces = streamed("Hello.")[:2] if stream else [b'{"choices": [']
    async with gateway(tmp_path, [Script(pieces, kind=kind, then="cut")]) as one:
        error = (await one.stream()).errors[0] if stream else (await one.complete())["error"]
    assert error["message"].startswith(
        "The model provider 'upstream' broke off in the middle of its answer. Try again;"
    )
    assert not INTERNALS.search(error["message"])
    assert "the answer of upstream broke off: " in caplog.text


@pytest.mark.requirement("chat:fault-words")
@pytest.mark.parametrize(
    ("status", "body", "shown"),
    [
        (400, {"error": {"message": "too long", "code": "context_length_exceeded"}},
         "answered 400 (context_length_exceeded): too long. The conversation is too long for this model: start"),
        (400, {"object": "error", "message": "This model's maximum context length is 8192 tokens.", "code": 400},
         "answered 400: This model's maximum context length is 8192 tokens. The conversation is too long"),
        (500, {"error": "no memory left"}, "answered 500: no memory left. The provider itself has a problem"),
        (401, {"error": {"message": "no such key", "code": None}}, "answered 401: no such key. Check the key"),
        (422, {"detail": "what is that"}, "answered 422: what is that"),
        (418, {"odd": 1}, 'answered 418: {"odd": 1}'),
    ],
)  # fmt: skip
async def test_a_refusal_shows_its_status_its_code_and_its_words(
    tmp_path: Path, status: int, body: dict[str, Any], shown: str
) -> None:
    async with gateway(tmp_path, [Script([json.dumps(body).encode()], status=status, kind="application/json")]) as one:
        error = (await one.complete())["error"]
        contact = one.chat.contacts()[""]
    message = error.get("toolyard", error)["message"]
    assert message.startswith(f"The model provider 'upstream' {shown}")
    assert contact.error == message


@pytest.mark.requirement("chat:fault-words")
async def test_advice_about_tools_is_not_taken_for_a_refusal_of_tools(tmp_path: Path) -> None:
    body = json.dumps({"error": {"message": "too long", "code": "context_length_exceeded"}}).encode()
    async with gateway(tmp_path, [Script([body], status=400, kind="application/json")]) as one:
        await one.complete(toolyard={"offer": "auto"})
        assert len(one.upstream.bodies) == 1
