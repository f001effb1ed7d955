"""The reason why a model provider gave no answer, in plain words: a failed connection, or a refusal, and what to do.

aiohttp and the operating system describe errors for programmers; their words go to the log. Everything that connects to
a provider explains its errors here: chat, the test of a provider, the list of models, and forwarded requests. A
refusal is an answer with a status other than 2xx: its code, its words, and what to do then.
"""

import errno
import logging
import re
import ssl
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from toolyard.gateway.providers.provider_json import parse_provider_json
from toolyard.message import Message
from toolyard.protocol.json import JsonObject

_log = logging.getLogger(__name__)
_OTHER_NAME, _EXPIRED, _NOT_YET_VALID = 62, 10, 9  # verify codes of OpenSSL
_UNREACHABLE = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.EADDRNOTAVAIL)
_CUT = (errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED)


@dataclass(frozen=True, slots=True)
class ConnectionCause:
    reason: Message  # a clause, after "cannot be reached:"
    advice: Message  # a sentence


def explain_connection_error(error: BaseException, url: str, name: str = "") -> ConnectionCause:
    """Return the cause of an error of aiohttp or the operating system, and log the error itself."""
    _log.info("no connection to the model provider %s at %s: %s: %s", name, _host(url), type(error).__name__, error)
    return _explain_proxy(error) or _explain_tls(error) or _explain_answer(error) or _explain_network(error, url)


def _explain_proxy(error: BaseException) -> ConnectionCause | None:
    import aiohttp

    if isinstance(error, aiohttp.ClientHttpProxyError):
        if error.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            return ConnectionCause(
                Message("the proxy asks for a user and a password"),
                Message("Write them into the proxy's address: http://user:password@host."),
            )
        return ConnectionCause(
            Message("the proxy answered {status}", status=error.status),
            Message("Check whether the proxy may connect to this provider."),
        )
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return ConnectionCause(
            Message("the proxy does not answer"),
            Message("Check the address of the proxy in the options of this provider."),
        )
    return None


def _explain_tls(error: BaseException) -> ConnectionCause | None:
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        code = getattr(error.certificate_error, "verify_code", None)
        if code in (_EXPIRED, _NOT_YET_VALID):
            return ConnectionCause(
                Message("its TLS certificate is not valid today"),
                Message("Renew it, and check the clock of the server's machine."),
            )
        if code == _OTHER_NAME:
            return ConnectionCause(
                Message("its TLS certificate belongs to another host"),
                Message("Use the host name that the certificate names."),
            )
        return ConnectionCause(
            Message("its TLS certificate is not trusted"),
            Message(
                "Add the authority that issued it to the trusted certificates of the server's machine, or name its "
                "file in SSL_CERT_FILE."
            ),
        )
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return ConnectionCause(
            Message("no TLS connection could be made"),
            Message(
                "Check whether the address begins with http:// or https://, and the port: a local model server often "
                "has no TLS."
            ),
        )
    return None


def _explain_answer(error: BaseException) -> ConnectionCause | None:
    """Explain an error after the connection was made."""
    import aiohttp

    if isinstance(error, aiohttp.ServerTimeoutError | TimeoutError):
        return ConnectionCause(Message("it did not answer in time"), advise_on_delay())
    if isinstance(error, aiohttp.ClientResponseError):
        return ConnectionCause(
            Message("what it sent is not HTTP"), Message("Check the port, and whether the address needs https://.")
        )
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError) or number in _CUT:
        return ConnectionCause(Message("it closed the connection before it answered"), advise_on_break())
    return None


def _explain_network(error: BaseException, url: str) -> ConnectionCause:
    import aiohttp

    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return ConnectionCause(
            Message("the host name '{host}' cannot be found", host=_host(url)),
            Message("Check the spelling of the address, and the network and the DNS of the server's machine."),
        )
    if isinstance(error, aiohttp.InvalidURL):
        return ConnectionCause(
            Message("its address is not valid"), Message("Write it like https://api.example.org/v1.")
        )
    if number == errno.ECONNREFUSED:
        return ConnectionCause(Message("Connection refused"), advise_on_silence(url))
    if number == errno.ETIMEDOUT:
        return ConnectionCause(Message("it did not accept the connection in time"), advise_on_silence(url))
    if number in _UNREACHABLE:
        return ConnectionCause(
            Message("no network leads to this address"),
            Message("Check the network connection of the server's machine, and its VPN if it needs one."),
        )
    if number in (errno.EACCES, errno.EPERM):
        return ConnectionCause(
            Message("the server's machine does not allow the connection"), Message("Check its firewall.")
        )
    return ConnectionCause(Message("no connection could be made"), advise_on_silence(url))


def advise_on_silence(url: str) -> Message:
    """Return what to do about a provider that does not answer at its address."""
    if _is_own_machine(_host(url)):
        return Message(
            "Nothing answers at this address of the server's own machine: start the model server, and check its port. "
            "In a container, localhost is the container itself."
        )
    return Message(
        "Check the spelling of the address, and whether the server's machine reaches it; it may need a proxy."
    )


def advise_on_delay() -> Message:
    """Return what to do about a provider that took the connection and sends nothing."""
    return Message("Check whether the model server is overloaded, or is still loading the model.")


def advise_on_break() -> Message:
    """Return what to do about a connection that was cut."""
    return Message(
        "Try again; if this happens again, look at the log of the model server: it may have crashed or run out of "
        "memory."
    )


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_own_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


_MAX_CODE = 100
_CONTEXT_CODES = ("context_length_exceeded", "exceed_context_size_error", "string_above_max_length")
_ABOUT_CONTEXT = re.compile(
    r"context[ _-](length|window|size|limit)|maximum context|(input|prompt) (is|was) too (long|large)", re.I
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    status: int
    own: JsonObject  # the provider's error object; empty: it sent none
    code: str  # the provider's, such as context_length_exceeded; empty: it sent none
    words: str  # the provider's, or the body as it is

    @property
    def advice(self) -> str:
        """Return what to do about a refused chat request; empty: the provider's words must do."""
        if self.is_about_context:
            return Message(
                "The conversation is too long for this model: start a new chat, shorten the message or its "
                "attachments, choose fewer tools, or a model with a larger context."
            )
        match self.status:
            case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
                return Message("Check the key of this provider in the settings.")
            case HTTPStatus.PAYMENT_REQUIRED | HTTPStatus.TOO_MANY_REQUESTS:
                return Message("The credit or the rate limit of its key is used up.")
            case _:
                return advise_on_status(self.status)

    @property
    def is_about_context(self) -> bool:
        """Return whether the conversation is too long for the model."""
        if self.code in _CONTEXT_CODES or self.own.get("type") in _CONTEXT_CODES:
            return True
        return self.status != HTTPStatus.TOO_MANY_REQUESTS and _ABOUT_CONTEXT.search(self.words) is not None


def read_refusal(status: int, body: bytes) -> Refusal:
    """Read the body of a refusal: OpenAI's error object, or what other servers send in its place."""
    try:
        answer = parse_provider_json(body)
    except ValueError:
        answer = None
    answer = answer if isinstance(answer, dict) else {}
    error = answer.get("error")
    own: JsonObject = error if isinstance(error, dict) else {}
    if isinstance(error, str):
        own = {"message": error, "type": "upstream_error", "param": None, "code": None}
    words = own.get("message") or answer.get("message") or answer.get("detail")
    return Refusal(
        status=int(status),
        own=own,
        code=_read_code(own.get("code"), status),
        words=words if isinstance(words, str) else body.decode("utf-8", "replace"),
    )


def advise_on_status(status: int) -> str:
    """Return what to do about a status that needs no look at the request."""
    if 300 <= status < 400:
        return Message("The provider has moved: enter its new address.")
    if status >= 500:
        return Message("The provider itself has a problem: try again later.")
    return ""


def _read_code(code: Any, status: int) -> str:
    text = str(code) if isinstance(code, str | int) and not isinstance(code, bool) else ""
    return "" if text == str(int(status)) else text[:_MAX_CODE]
