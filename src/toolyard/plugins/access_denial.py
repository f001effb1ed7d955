"""Signs in what a program printed that its confinement stopped it, and in which respect."""

import re
from collections.abc import Iterable
from enum import StrEnum

_REFUSED = re.compile(r"Permission denied|Operation not permitted|Read-only file system|\bE(?:ACCES|PERM|ROFS)\b", re.I)
_UNREACHABLE = re.compile(
    r"Network is unreachable|Temporary failure in name resolution|Name or service not known|Could not resolve host"
    r"|Toolyard's proxy|\b(?:ENETUNREACH|EAI_AGAIN|ENOTFOUND)\b",
    re.I,
)
_NETWORK_WORDS = re.compile(r"\b(?:connect\w*|sockets?|urlopen|https?|network|fetch|dns|getaddrinfo)\b", re.I)


class AccessDenial(StrEnum):
    """The part of its access that a program seems to lack."""

    FILES = "files"
    NETWORK = "network"


def find_denial(texts: Iterable[str], *, limited_network: bool) -> AccessDenial | None:
    """Return what a confined program seems to lack; None: nothing of that.

    A program whose network is open cannot lack it; one without any is told EACCES when it makes a socket.
    """
    for text in texts:
        refused = _REFUSED.search(text)
        if limited_network and (_UNREACHABLE.search(text) or (refused and _NETWORK_WORDS.search(text))):
            return AccessDenial.NETWORK
        if refused:
            return AccessDenial.FILES
    return None
