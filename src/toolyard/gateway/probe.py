"""Whether a model provider answers: one question for its models, and its exact words when it refuses.

Redirects are not followed, so a key goes to the origin it is meant for and nowhere else. At most ``PROBE_S`` seconds
and 4 MiB.
"""

import os
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import orjson

from toolyard.gateway.faults import refused
from toolyard.gateway.upstream import chat_base

if TYPE_CHECKING:
    from aiohttp import StreamReader

PROBE_S: Final = 15.0
_MAX_BYTES = 4 * 2**20
_MAX_MODELS = 2000


@dataclass(frozen=True, slots=True)
class Probe:
    models: tuple[str, ...] = ()
    error: str = ""  # empty: it answered


async def probe(url: str, key: str | None) -> Probe:
    """Ask it. Never raises for what the provider does."""
    import aiohttp

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    timeout = aiohttp.ClientTimeout(total=PROBE_S)
    try:
        async with (
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), timeout=timeout) as session,
            session.get(f"{chat_base(url)}/models", headers=headers, allow_redirects=False) as got,
        ):
            body = await _bounded(got.content)
            status = got.status
    except TimeoutError:
        return Probe(error=f"it did not answer within {PROBE_S:g} s")
    except (aiohttp.ClientError, OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else None
        why = os.strerror(number) if number is not None and number > 0 else str(error) or type(error).__name__
        return Probe(error=f"it cannot be reached: {why}")
    if status != HTTPStatus.OK:
        return Probe(error=_words(status, body))
    return _listed(body)


async def _bounded(content: "StreamReader") -> bytes:
    data = b""
    while len(data) <= _MAX_BYTES and (more := await content.read(65536)):
        data += more
    return data


def _words(status: int, body: bytes) -> str:
    fault = refused("", status, body).fault
    said = fault.own.get("message")
    if isinstance(said, str) and said:
        return f"it answered {status}: {said}"
    return "it " + fault.message.partition("'' ")[2]


def _listed(body: bytes) -> Probe:
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        return Probe(error="it answered with something that is no JSON: is this the address of a model provider?")
    listed = said.get("data") if isinstance(said, dict) else None
    if not isinstance(listed, list):
        return Probe(error="its answer has no list of models: is this the address of a model provider?")
    names = (one.get("id") for one in listed[:_MAX_MODELS] if isinstance(one, dict))
    return Probe(models=tuple(name for name in names if isinstance(name, str)))
