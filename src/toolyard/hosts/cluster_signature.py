"""Signatures between hosts: HMAC-SHA256 with the ``cluster_key`` over everything that decides what runs.

A call is signed by the host that sends it, in one of its terms; its end by the host that ran it; an announcement, with
all its tools, by the host that offers them. Whoever can write to the database, and does not know the key, can neither
start a call nor answer one, nor tell a model about a tool. Without a key nothing is signed, and nothing is refused.
"""

import hmac
import json
from collections.abc import Sequence
from dataclasses import replace

from toolyard.protocol.host import Host
from toolyard.protocol.json import Json
from toolyard.protocol.remote_call import RemoteCall
from toolyard.storage.secret_key import SecretKey


class ClusterSigner:
    def __init__(self, key: SecretKey | None = None) -> None:
        self._key = key

    def sign_call(self, call: RemoteCall) -> RemoteCall:
        return replace(call, signature=self._sign(_call_content(call)))

    def sign_end(self, call: RemoteCall) -> RemoteCall:
        return replace(call, end_signature=self._sign(_end_content(call)))

    def is_call_valid(self, call: RemoteCall) -> bool:
        return hmac.compare_digest(call.signature.encode(), self._sign(_call_content(call)).encode()) or not self._key

    def is_end_valid(self, call: RemoteCall) -> bool:
        return (
            hmac.compare_digest(call.end_signature.encode(), self._sign(_end_content(call)).encode()) or not self._key
        )

    def sign_host(self, host: Host, tools: Sequence[str]) -> Host:
        """Return an announcement with its signature; ``tools`` are the texts of its offer."""
        return replace(host, signature=self._sign(_host_content(host, tools)))

    def is_host_valid(self, host: Host, tools: Sequence[str]) -> bool:
        expected = self._sign(_host_content(host, tools))
        return hmac.compare_digest(host.signature.encode(), expected.encode()) or not self._key

    def _sign(self, content: list[Json]) -> str:
        if self._key is None:
            return ""
        return hmac.digest(self._key.secret, json.dumps(content, separators=(",", ":")).encode(), "sha256").hex()


def _call_content(call: RemoteCall) -> list[Json]:
    """Return what the sender vouches for. ``call_text`` has the arguments; ``sender`` its host and its term."""
    return [
        *("toolyard remote call", call.id, call.tool, call.call_text, call.caller, call.sender),
        *(call.created, call.due, call.is_idempotent),
    ]


def _end_content(call: RemoteCall) -> list[Json]:
    return ["toolyard end of a remote call", call.id, call.tool, call.runs, call.outcome_text, call.failure]


def _host_content(host: Host, tools: Sequence[str]) -> list[Json]:
    """Return what a host says about itself. Its state is not part of it: others may find that it is lost."""
    return ["toolyard host", host.id, host.machine, host.keeps, host.term, host.offer, [*host.tools], [*tools]]
