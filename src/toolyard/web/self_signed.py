"""The self-signed certificate of a home: made when it is first needed, and made again before it ends.

Its key stays the same; only its owner can read it. The certificate is made again ``RENEW_DAYS`` before it ends, and
when the server gets a name or an address that it lacks. It may not sign others, so that a phone which trusts it trusts
nothing else.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final

from toolyard.crashpoint import crashpoint
from toolyard.errors import StorageUnwritable
from toolyard.workspace.home_folder import make_private_folder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate

FOLDER: Final = "tls"
CERTIFICATE_FILE: Final = "certificate.pem"
KEY_FILE: Final = "key.pem"
VALID_DAYS: Final = 397  # browsers refuse more than 398 to 825
RENEW_DAYS: Final = 30


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
