"""The certificate of the server: files of the operator, or a self-signed one that the home keeps.

New connections get a changed certificate without a restart: the files are looked at every ``CHECK_S``. One that cannot
be used is logged, and the previous one stays in effect. The self-signed one is made when it is first needed, and again
``RENEW_DAYS`` before it ends or when the server gets a name or an address that it lacks; its key stays the same, and
only its owner can read it. It may not sign others, so that a phone which trusts it trusts nothing else.
"""

import asyncio
import hashlib
import logging
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from toolyard.config import Config
from toolyard.crashpoint import crashpoint
from toolyard.errors import StorageUnwritable, ToolyardError, UsageError
from toolyard.message import Message
from toolyard.web.server.listener import list_lan_addresses
from toolyard.workspace.home_folder import make_private_folder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate


CHECK_S: Final = 60.0
_log = logging.getLogger("toolyard.web")
FOLDER: Final = "tls"
CERTIFICATE_FILE: Final = "certificate.pem"
KEY_FILE: Final = "key.pem"
VALID_DAYS: Final = 397  # browsers refuse more than 398 to 825
RENEW_DAYS: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOptions:
    """The origin of a certificate: two files, or a self-signed one."""

    certificate: Path | None = None
    key: Path | None = None
    self_signed: bool = False


def choose_tls(config: Config, given: TlsOptions) -> TlsOptions | None:
    """Return the options of the command line, else those of the settings; None: plain HTTP. Raises UsageError."""
    settings = config.settings
    written = TlsOptions(certificate=settings.tls_cert, key=settings.tls_key, self_signed=settings.tls_self_signed)
    options = given if given != TlsOptions() else written
    if (options.certificate is None) != (options.key is None):
        raise UsageError(Message("TLS needs a certificate and its key: set both --tls-cert and --tls-key"))
    if options.certificate is not None and options.self_signed:
        raise UsageError(Message("choose one certificate: --tls-self-signed, or --tls-cert with --tls-key"))
    return None if options == TlsOptions() else options


class _Files(NamedTuple):
    certificate: Path
    key: Path

    def read_version(self) -> tuple[tuple[int, int], ...]:
        """Return what changes when a file does. Raises OSError."""
        return tuple((stat.st_mtime_ns, stat.st_ino) for stat in (self.certificate.stat(), self.key.stat()))


class Tls:
    """The TLS context of a server, which follows its certificate."""

    def __init__(self, config: Config, options: TlsOptions, host: str, now: Callable[[], datetime]) -> None:
        """Load the certificate. Raises ToolyardError."""
        self._home, self._options, self._now = config.home, options, now
        self._names = split_names(_list_names(config, host))
        files = self._find_files()
        self.context = _make_context(files)
        self._version = files.read_version()
        self.fingerprint = read_fingerprint(files.certificate)

    @property
    def is_self_signed(self) -> bool:
        return self._options.self_signed

    def refresh(self) -> None:
        """Use the certificate that is there now, if it has changed. Raises ToolyardError, and nothing changes."""
        files = self._find_files()
        version = _read_version(files)
        if version == self._version:
            return
        _make_context(files)  # a certificate and a key that do not match would break the context in use
        _load(self.context, files)
        self._version, self.fingerprint = version, read_fingerprint(files.certificate)
        _log.warning("the certificate has changed; its SHA-256 fingerprint is %s", self.fingerprint)

    async def watch(self) -> None:
        """Refresh the certificate until cancelled."""
        problem = ""
        while True:
            await asyncio.sleep(CHECK_S)
            try:
                await asyncio.to_thread(self.refresh)
                problem = ""
            except ToolyardError as error:
                if str(error) != problem:
                    problem = str(error)
                    _log.warning("the previous certificate stays in use: %s", problem)

    def _find_files(self) -> _Files:
        if self._options.certificate is not None and self._options.key is not None:
            return _Files(self._options.certificate, self._options.key)
        return _Files(*ensure_certificate(self._home, self._names, self._now()))


def _list_names(config: Config, host: str) -> list[str]:
    """Return the names and addresses by which the server may be reached."""
    from urllib.parse import urlsplit

    machine = socket.gethostname()
    names = ["localhost", machine, f"{machine.partition('.')[0]}.local", "127.0.0.1", "::1", *list_lan_addresses()]
    if host not in ("0.0.0.0", "::"):  # noqa: S104 compared, not bound
        names.append(host)
    hosts = [urlsplit(f"//{name}").hostname for name in config.settings.allowed_hosts]
    hosts.append(urlsplit(config.settings.public_url or "").hostname)
    return [name for name in (*names, *hosts) if name and name.isascii()]


def _make_context(files: _Files) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    _load(context, files)
    return context


def _load(context: ssl.SSLContext, files: _Files) -> None:
    """Load a certificate and its key into a context. Raises ToolyardError."""
    _read_version(files)  # names a missing file, which OpenSSL does not
    try:
        context.load_cert_chain(files.certificate, files.key, password="")
    except (OSError, ValueError) as error:
        raise ToolyardError(
            Message(
                "cannot use the certificate {certificate} with the key {key}: {problem}; both must be PEM files, the "
                "key without a password",
                certificate=files.certificate,
                key=files.key,
                problem=_describe(error),
            )
        ) from error


def _describe(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
        return Message("the key is not that of the certificate")
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    return str(error)


def _read_version(files: _Files) -> tuple[tuple[int, int], ...]:
    try:
        return files.read_version()
    except OSError as error:
        raise ToolyardError(
            Message("cannot read {file}: {problem}", file=error.filename, problem=error.strerror or error)
        ) from error


def read_fingerprint(certificate: Path) -> str:
    """Return the SHA-256 fingerprint of the first certificate of a PEM file, as browsers show it."""
    text = certificate.read_text(encoding="ascii", errors="replace")
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    first = begin + text.partition(begin)[2].partition(end)[0] + end
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).hexdigest().upper()
    return ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))


@dataclass(frozen=True, slots=True)
class CertificateNames:
    """The host names and IP addresses that a certificate is for."""

    hosts: tuple[str, ...]
    addresses: tuple[str, ...]


def split_names(names: list[str]) -> CertificateNames:
    """Return host names and addresses, each once."""
    hosts, addresses = [], []
    for name in dict.fromkeys(names):
        try:
            addresses.append(str(ip_address(name)))
        except ValueError:
            hosts.append(name.lower())
    return CertificateNames(tuple(dict.fromkeys(hosts)), tuple(dict.fromkeys(addresses)))


def ensure_certificate(home: Path, names: CertificateNames, now: datetime) -> tuple[Path, Path]:
    """Return the files of the certificate and its key, made or renewed if necessary. Raises StorageUnwritable."""
    folder = home / FOLDER
    certificate, key = folder / CERTIFICATE_FILE, folder / KEY_FILE
    try:
        make_private_folder(folder)
        private = _read_key(key) or _make_key(key)
        if not _is_usable(certificate, private, names, now):
            _write_private(certificate, _make_certificate(private, names, now))
    except OSError as error:
        raise StorageUnwritable.from_os_error(folder, error) from error
    return certificate, key


def _read_key(file: Path) -> "EllipticCurvePrivateKey | None":
    """Return the stored key; None when there is none that can be used."""
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(file.read_bytes(), None)
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return key if isinstance(key, EllipticCurvePrivateKey) else None


def _make_key(file: Path) -> "EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    encoded = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write_private(file, encoded)
    return key


def _is_usable(file: Path, key: "EllipticCurvePrivateKey", names: CertificateNames, now: datetime) -> bool:
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(file.read_bytes())
        covered = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (FileNotFoundError, ValueError, x509.ExtensionNotFound):
        return False
    hosts = set(covered.get_values_for_type(x509.DNSName))
    addresses = {str(one) for one in covered.get_values_for_type(x509.IPAddress)}
    return (
        certificate.public_key() == key.public_key()
        and certificate.not_valid_before_utc <= now
        and certificate.not_valid_after_utc - now > timedelta(days=RENEW_DAYS)
        and hosts >= set(names.hosts)
        and addresses >= set(names.addresses)
    )


def _make_certificate(key: "EllipticCurvePrivateKey", names: CertificateNames, now: datetime) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return _build_certificate(key, names, now.astimezone(UTC)).public_bytes(Encoding.PEM)


def _build_certificate(key: "EllipticCurvePrivateKey", names: CertificateNames, now: datetime) -> "Certificate":
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Toolyard (self-signed)")])
    alternatives = [
        *(x509.DNSName(host) for host in names.hosts),
        *(x509.IPAddress(ip_address(address)) for address in names.addresses),
    ]
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))  # the clock of a phone may be behind
        .not_valid_after(now + timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )


def _write_private(file: Path, content: bytes) -> None:
    """Write a file that only its owner can read; after a crash it is the old one or the new one."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(fd)
        crashpoint("tls.before-replace")
        draft.replace(file)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
