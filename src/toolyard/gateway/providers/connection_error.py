"""The cause of a failed connection to a model provider, in plain words, and what to do about it.

aiohttp and the operating system describe errors for programmers; their words go to the log. Everything that connects to
a provider explains its errors here: chat, the test of a provider, the list of models, and forwarded requests.
"""

import errno
import logging
import ssl
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urlsplit

from toolyard.message import Message

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
                Message("provider.proxy_needs_password", "the proxy asks for a user and a password"),
                Message(
                    "provider.hint_proxy_password", "Write them into the proxy's address: http://user:password@host."
                ),
            )
        return ConnectionCause(
            Message("provider.proxy_refused", "the proxy answered {status}", status=error.status),
            Message("provider.hint_proxy_refused", "Check whether the proxy may connect to this provider."),
        )
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return ConnectionCause(
            Message("provider.proxy_unreachable", "the proxy does not answer"),
            Message("provider.hint_proxy", "Check the address of the proxy in the options of this provider."),
        )
    return None


def _explain_tls(error: BaseException) -> ConnectionCause | None:
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        code = getattr(error.certificate_error, "verify_code", None)
        if code in (_EXPIRED, _NOT_YET_VALID):
            return ConnectionCause(
                Message("provider.certificate_expired", "its TLS certificate is not valid today"),
                Message("provider.hint_certificate_expired", "Renew it, and check the clock of the server's machine."),
            )
        if code == _OTHER_NAME:
            return ConnectionCause(
                Message("provider.certificate_of_other_host", "its TLS certificate belongs to another host"),
                Message("provider.hint_certificate_of_other_host", "Use the host name that the certificate names."),
            )
        return ConnectionCause(
            Message("provider.certificate_untrusted", "its TLS certificate is not trusted"),
            Message(
                "provider.hint_certificate_untrusted",
                "Add the authority that issued it to the trusted certificates of the server's machine, or name its "
                "file in SSL_CERT_FILE.",
            ),
        )
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return ConnectionCause(
            Message("provider.tls_failed", "no TLS connection could be made"),
            Message(
                "provider.hint_tls_failed",
                "Check whether the address begins with http:// or https://, and the port: a local model server often "
                "has no TLS.",
            ),
        )
    return None


def _explain_answer(error: BaseException) -> ConnectionCause | None:
    """Explain an error after the connection was made."""
    import aiohttp

    if isinstance(error, aiohttp.ServerTimeoutError | TimeoutError):
        return ConnectionCause(
            Message("provider.timed_out", "it did not answer in time"),
            advise_on_delay(),
        )
    if isinstance(error, aiohttp.ClientResponseError):
        return ConnectionCause(
            Message("provider.not_http", "what it sent is not HTTP"),
            Message("provider.hint_not_http", "Check the port, and whether the address needs https://."),
        )
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError) or number in _CUT:
        return ConnectionCause(
            Message("provider.connection_cut", "it closed the connection before it answered"),
            advise_on_break(),
        )
    return None


def _explain_network(error: BaseException, url: str) -> ConnectionCause:
    import aiohttp

    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return ConnectionCause(
            Message("provider.unknown_host", "the host name '{host}' cannot be found", host=_host(url)),
            Message(
                "provider.hint_unknown_host",
                "Check the spelling of the address, and the network and the DNS of the server's machine.",
            ),
        )
    if isinstance(error, aiohttp.InvalidURL):
        return ConnectionCause(
            Message("provider.invalid_address", "its address is not valid"),
            Message("provider.hint_invalid_address", "Write it like https://api.example.org/v1."),
        )
    if number == errno.ECONNREFUSED:
        return ConnectionCause(Message("provider.connection_refused", "Connection refused"), advise_on_silence(url))
    if number == errno.ETIMEDOUT:
        return ConnectionCause(
            Message("provider.connection_timed_out", "it did not accept the connection in time"), advise_on_silence(url)
        )
    if number in _UNREACHABLE:
        return ConnectionCause(
            Message("provider.network_unreachable", "no network leads to this address"),
            Message(
                "provider.hint_network_unreachable",
                "Check the network connection of the server's machine, and its VPN if it needs one.",
            ),
        )
    if number in (errno.EACCES, errno.EPERM):
        return ConnectionCause(
            Message("provider.connection_blocked", "the server's machine does not allow the connection"),
            Message("provider.hint_connection_blocked", "Check its firewall."),
        )
    return ConnectionCause(Message("provider.no_connection", "no connection could be made"), advise_on_silence(url))


def advise_on_silence(url: str) -> Message:
    """Return what to do about a provider that does not answer at its address."""
    if _is_own_machine(_host(url)):
        return Message(
            "provider.hint_local",
            "Nothing answers at this address of the server's own machine: start the model server, and check its port. "
            "In a container, localhost is the container itself.",
        )
    return Message(
        "provider.hint_network",
        "Check the spelling of the address, and whether the server's machine reaches it; it may need a proxy.",
    )


def advise_on_delay() -> Message:
    """Return what to do about a provider that took the connection and sends nothing."""
    return Message(
        "provider.hint_timed_out", "Check whether the model server is overloaded, or is still loading the model."
    )


def advise_on_break() -> Message:
    """Return what to do about a connection that was cut."""
    return Message(
        "provider.hint_cut",
        "Try again; if this happens again, look at the log of the model server: it may have crashed or run out of "
        "memory.",
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
