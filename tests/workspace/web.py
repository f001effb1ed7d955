"""A web server on this machine that says what a test tells it to, and remembers what it was asked."""

import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from toolyard.workspace.safe_fetch import Address

# Made for these tests and used nowhere else: a key, and a certificate for files.example that is valid until 2120.
KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg35pMZ10SV1SMX6zf
x3C00mMfTf9qa3l8Di4QCuVXIbihRANCAAQlehcID0PLOGujZjrmWEzJCFdx/e3W
gECai87FP7gvIaoZ6gzPhExEZ2DGzoXjdrGRDCdbWzZT9iUDYkhKH4wY
-----END PRIVATE KEY-----
"""
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBbTCCAROgAwIBAgIBATAKBggqhkjOPQQDAjAYMRYwFAYDVQQDDA1maWxlcy5l
eGFtcGxlMCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAYMRYwFAYD
VQQDDA1maWxlcy5leGFtcGxlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEJXoX
CA9Dyzhro2Y65lhMyQhXcf3t1oBAmovOxT+4LyGqGeoMz4RMRGdgxs6F43axkQwn
W1s2U/YlA2JISh+MGKNMMEowGAYDVR0RBBEwD4INZmlsZXMuZXhhbXBsZTAPBgNV
HRMBAf8EBTADAQH/MB0GA1UdDgQWBBQmpOAU7BekImTGnsAS/MWHGS0iKjAKBggq
hkjOPQQDAgNIADBFAiEAt9h/jN/1LZLxMx8/ivFn/xw7lUFxyLJMTg7hoRs3I5sC
IC4PnZp1I/ZSl7pjC4xpJxqVVhfR4ifDzi3RvUWiEcJC
-----END CERTIFICATE-----
"""


@dataclass(frozen=True)
class Reply:
    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    declared: int | None = None  # the length it declares; its own unless said otherwise
    sized: bool = True  # whether it declares a length at all
    hangs: str = ""  # "headers" or "body": where it stops until the test ends; "drips": it never stops


@dataclass
class Web:
    port: int
    replies: dict[str, Reply] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)  # Host header and path
    ended: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str, host: str = "files.example", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


@contextmanager
def serving(tls_folder: Path | None = None) -> Iterator[Web]:
    """A server on 127.0.0.1; with a folder for its key and certificate, one of https."""

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            web.asked.append((self.headers["Host"], self.path))
            reply = web.replies.get(self.path, Reply(status=404))
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.hangs == "headers":
                self.flush_headers()
                web.ended.wait()
                return
            if reply.sized:
                self.send_header("Content-Length", str(len(reply.body) if reply.declared is None else reply.declared))
            self.end_headers()
            self.wfile.write(reply.body)
            if reply.hangs == "body":
                self.wfile.flush()
                web.ended.wait()
            while reply.hangs == "drips" and not web.ended.wait(0.01):
                self.wfile.write(b".")

        def log_message(self, *words: Any) -> None:
            """Say nothing: what was asked is in ``asked``."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *words: Any) -> None:
            """A client that hangs up is what some tests are about."""

    server = Server(("127.0.0.1", 0), Answering)
    if tls_folder is not None:
        (tls_folder / "key.pem").write_text(KEY + CERTIFICATE)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls_folder / "key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    web = Web(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield web
    finally:
        web.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


def here(host: str, port: int) -> list[str]:
    """Every name is this machine."""
    return ["127.0.0.1"]


def loopback_too(address: Address) -> bool:
    """The rule of tests whose server is on this machine."""
    return address.is_loopback
