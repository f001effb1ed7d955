"""TLS of the server: its certificate, from files of the operator or self-signed in the home.

New connections get a changed certificate without a restart: the files are looked at every ``CHECK_S``. One that cannot
be used is logged, and the previous one stays in effect.
"""

import asyncio
import hashlib
import logging
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from toolyard.config import Config
from toolyard.errors import ToolyardError, UsageError
from toolyard.message import Message
from toolyard.web.network_address import list_lan_addresses
from toolyard.web.self_signed import ensure_certificate, split_names

CHECK_S: Final = 60.0
_log = logging.getLogger("toolyard.web")


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
        raise UsageError(
            Message("tls.both_files_needed", "TLS needs a certificate and its key: set both --tls-cert and --tls-key")
        )
    if options.certificate is not None and options.self_signed:
        raise UsageError(
            Message("tls.one_certificate", "choose one certificate: --tls-self-signed, or --tls-cert with --tls-key")
        )
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
                "tls.cannot_load",
                "cannot use the certificate {certificate} with the key {key}: {problem}; both must be PEM files, the "
                "key without a password",
                certificate=files.certificate,
                key=files.key,
                problem=_describe(error),
            )
        ) from error


def _describe(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
        return Message("tls.key_mismatch", "the key is not that of the certificate")
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    return str(error)


def _read_version(files: _Files) -> tuple[tuple[int, int], ...]:
    try:
        return files.read_version()
    except OSError as error:
        raise ToolyardError(
            Message(
                "tls.cannot_read",
                "cannot read {file}: {problem}",
                file=error.filename,
                problem=error.strerror or error,
            )
        ) from error


def read_fingerprint(certificate: Path) -> str:
    """Return the SHA-256 fingerprint of the first certificate of a PEM file, as browsers show it."""
    text = certificate.read_text(encoding="ascii", errors="replace")
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    first = begin + text.partition(begin)[2].partition(end)[0] + end
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).hexdigest().upper()
    return ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))
