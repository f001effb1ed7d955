"""Keeps other machines on HTTPS when the server has a certificate.

Plain HTTP from another machine is redirected, or refused if it is no page request: its key has been on the wire
already. This machine may use it. Responses over HTTPS ask browsers to stay with it (HSTS), unless the certificate is
self-signed: a browser could not get past its warning any more.
"""

import re
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as AsgiMessage

from toolyard.message import Message
from toolyard.web.refusal import error_body

_HSTS: Final = (b"strict-transport-security", b"max-age=15552000")  # 180 days
_HOST: Final = re.compile(r"[A-Za-z0-9.-]+(:\d{1,5})?|\[[0-9A-Fa-f:]+\](:\d{1,5})?")


class HttpsOnly:
    def __init__(self, app: ASGIApp, *, sends_hsts: bool) -> None:
        self._app, self._sends_hsts = app, sends_hsts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
        elif scope["scheme"] in ("https", "wss"):
            await self._app(scope, receive, self._add_hsts(send) if self._sends_hsts else send)
        elif is_same_machine(scope):
            await self._app(scope, receive, send)
        else:
            await _refuse(scope, send)

    @staticmethod
    def _add_hsts(send: Send) -> Send:
        async def send_with_header(message: AsgiMessage) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], _HSTS]
            await send(message)

        return send_with_header


def is_same_machine(scope: Scope) -> bool:
    """Return whether a connection comes from the machine that it goes to."""
    client, server = (scope.get("client") or ("",))[0], (scope.get("server") or ("",))[0]
    try:
        address = ip_address(client)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address  # IPv4 on a socket for both
    return address.is_loopback or client == server


async def _refuse(scope: Scope, send: Send) -> None:
    kind = "http.response" if scope["type"] == "http" else "websocket.http.response"
    host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
    if scope.get("method") in ("GET", "HEAD") and _HOST.fullmatch(host):
        query = scope["query_string"].decode("latin-1")
        target = f"https://{host}{scope['raw_path'].decode('latin-1')}{'?' if query else ''}{query}"
        status, body, headers = HTTPStatus.TEMPORARY_REDIRECT, b"", [(b"location", target.encode("latin-1"))]
    else:
        sentence = Message("http.https_needed", "this server speaks HTTPS: use an address that begins with https://")
        status, body = HTTPStatus.UPGRADE_REQUIRED, error_body(HTTPStatus.UPGRADE_REQUIRED, sentence, "https_required")
        headers = [(b"content-type", b"application/json"), (b"upgrade", b"TLS/1.2, HTTP/1.1")]
    headers += [(b"content-length", str(len(body)).encode()), (b"connection", b"close")]
    await send({"type": f"{kind}.start", "status": int(status), "headers": headers})
    await send({"type": f"{kind}.body", "body": body})
