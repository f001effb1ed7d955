"""The world's https servers, played by one server on loopback: an https proxy that ends TLS itself.

A program under test finds it through ``https_proxy`` and trusts its authority through ``SSL_CERT_FILE`` (Python) or
``NODE_EXTRA_CA_CERTS`` (Node), as it would trust a company's proxy. So it talks to the addresses that stand in its own
code, and the test sees which host gets what.
"""

import json
import queue
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.shipped.children import Asked, Reply

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Vendors:
    """The proxy, and every request that a host got: (host, request)."""

    environment: dict[str, str]
    asked: "queue.Queue[tuple[str, Asked]]"

    def drain(self) -> list[tuple[str, Asked]]:
        found = []
        while not self.asked.empty():
            found.append(self.asked.get_nowait())
        return found


class Authority:
    """A certificate authority for one test, with a certificate for every host that is asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "the test's own authority")])
        certificate = self._sign(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None))
        self.file = folder / "authority.pem"
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        self._lock = threading.Lock()
        self._contexts: dict[str, ssl.SSLContext] = {}

    def context(self, host: str) -> ssl.SSLContext:
        with self._lock:
            if host not in self._contexts:
                self._contexts[host] = self._make_context(host)
            return self._contexts[host]

    def _make_context(self, host: str) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a vendor")])
        certificate = self._sign(name, key, x509.SubjectAlternativeName([x509.DNSName(host)]))
        file = self._folder / f"{host}.pem"
        plain = serialization.NoEncryption()
        private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _sign(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(self._name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - _DAY)
        builder = builder.not_valid_after(now + _DAY)
        is_authority = isinstance(extension, x509.BasicConstraints)
        builder = builder.add_extension(extension, critical=is_authority)
        # Python 3.13 checks strictly: what a key may be used for, and the key of the authority.
        builder = builder.add_extension(_usage(is_authority=is_authority), critical=True)
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(authority, critical=False)
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        return builder.add_extension(own, critical=False).sign(self._key, hashes.SHA256())


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=is_authority, crl_sign=is_authority, encipher_only=False,
        decipher_only=False,
    )  # fmt: skip


@contextmanager
def playing_vendors(folder: Path, answer: Callable[[str, Asked], Reply]) -> Iterator[Vendors]:
    """Answers every request to any https host, and any plain one that goes through the proxy."""
    authority = Authority(folder)
    asked: queue.Queue[tuple[str, Asked]] = queue.Queue()

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        host = ""

        def do_CONNECT(self) -> None:
            self.host = self.path.rpartition(":")[0]
            self.send_response(200)
            self.end_headers()
            self.connection = authority.context(self.host).wrap_socket(self.connection, server_side=True)
            self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
            self.close_connection = False  # what comes next is the request itself

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Asked(self.path, dict(self.headers.items()), body)
            host = self.host or self.headers.get("Host", "")
            reply = answer(host, request)
            asked.put((host, request))  # first: who has the answer may count the requests
            raw = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(raw)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

        do_POST = do_GET = _answer  # noqa: N815

        def finish(self) -> None:
            super().finish()
            self.connection.close()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        try:
            yield Vendors(
                {
                    "https_proxy": address,
                    "HTTPS_PROXY": address,
                    "SSL_CERT_FILE": str(authority.file),
                    "NODE_EXTRA_CA_CERTS": str(authority.file),
                },
                asked,
            )
        finally:
            server.shutdown()
            thread.join()
