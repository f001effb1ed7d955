"""Signed links to stored media, for people whose client shows text only.

A link is ``PUBLIC_URL/media/NAME?expires=SECONDS&signature=HEX``. The signature, an HMAC-SHA256 over name and expiry
with a secret of the home, is the permission: the holder of the link may see this one file until the link expires.
"""

import asyncio
import hmac
import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from enum import Enum, auto
from hashlib import sha256
from typing import Final

from toolyard.gateway.media_parts import to_data_url, to_markdown
from toolyard.protocol.content import Media
from toolyard.storage.media_store import EXTENSIONS, KEPT, MAX_BYTES, MediaStore, StoredMedia

MAX_SHOWN: Final = 20  # of one round
_EXPIRY = re.compile("[1-9][0-9]{0,11}")  # seconds since 1970
_log = logging.getLogger(__name__)


class LinkState(Enum):
    VALID = auto()
    EXPIRED = auto()
    FORGED = auto()  # its signature does not fit


class MediaLinks:
    """Makes links to the files of a store. ``public_url`` is where people reach the server; it may change."""

    def __init__(self, store: MediaStore, public_url: str, now: Callable[[], datetime]) -> None:
        self.public_url = public_url
        self._store, self._now = store, now
        self._key: bytes | None = None

    async def publish(self, media: Media) -> str:
        """Store a piece of media and return its link; empty when its type is not stored, or storing fails."""
        if media.mime not in EXTENSIONS or len(media.data) > MAX_BYTES:
            return ""
        try:
            name = await asyncio.to_thread(self._store.put, media)
            if self._key is None:
                self._key = await asyncio.to_thread(self._store.make_signing_key)
        except OSError as error:
            _log.warning("a picture or other media of a tool cannot be kept for its link: %s", error)
            return ""
        expires = int((self._now() + KEPT).timestamp())
        return f"{self.public_url}/media/{name}?expires={expires}&signature={_sign(self._key, name, expires)}"

    async def check(self, name: str, expires: str, signature: str) -> LinkState:
        """Return the state of a link now. Raises OSError when the secret cannot be read."""
        if self._key is None:
            self._key = await asyncio.to_thread(self._store.signing_key)
        if self._key is None or not _EXPIRY.fullmatch(expires):
            return LinkState.FORGED
        expected = _sign(self._key, name, int(expires))
        if not hmac.compare_digest(expected.encode(), signature.encode(errors="replace")):
            return LinkState.FORGED
        return LinkState.VALID if self._now().timestamp() < int(expires) else LinkState.EXPIRED

    async def find(self, name: str) -> StoredMedia | None:
        return await asyncio.to_thread(self._store.find, name)


async def publish_all(results: Iterable[tuple[str, Media]], publish: Callable[[Media], Awaitable[str]]) -> list[str]:
    """Return the media of tools, each with the name of its tool, as Markdown; what has no address is left out."""
    by_digest: dict[bytes, str] = {}  # the same picture is shown once
    for tool, media in results:
        digest = sha256(media.data).digest()
        if digest not in by_digest and (url := to_data_url(media) or await publish(media)):
            by_digest[digest] = to_markdown(media, url, tool)
    links = list(by_digest.values())
    more = len(links) - MAX_SHOWN
    return [*links[:MAX_SHOWN], f"({more} more are not shown.)"] if more > 0 else links


def _sign(key: bytes, name: str, expires: int) -> str:
    return hmac.digest(key, f"{name}\n{expires}".encode(errors="replace"), "sha256").hex()
