"""Probes a model provider: one request for its models, its exact words when it refuses, and what to do then.

Redirects are not followed, so a key goes to the origin it is meant for and nowhere else. At most ``PROBE_S`` seconds
and 4 MiB.
"""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from toolyard.gateway.faults import ChatFailed, describe_refusal, unreachable_provider
from toolyard.gateway.providers.answer import ResponseBody
from toolyard.gateway.providers.diagnosis import (
    advise_on_silence,
    advise_on_status,
    explain_connection_error,
    read_refusal,
)
from toolyard.gateway.providers.endpoint import Endpoint
from toolyard.gateway.providers.provider_json import parse_provider_json
from toolyard.gateway.providers.upstream import MAX_LIST, is_answer
from toolyard.message import Message
from toolyard.provider_settings import ProviderOptions

if TYPE_CHECKING:
    import aiohttp

PROBE_S: Final = 15.0
_MAX_MODELS = 2000
_KEY_CHECKS: Final = {"openrouter.ai": "/key"}  # they list their models to everybody, so the list proves no key


@dataclass(frozen=True, slots=True)
class Probe:
    models: tuple[str, ...] = ()
    error: str = ""  # empty: it answered
    hint: str = ""
    status: int | None = None  # None: there was no answer


async def probe(url: str, key: str | None, options: ProviderOptions = ProviderOptions()) -> Probe:  # noqa: B008 frozen
    """Request the provider's list of models. Never raises for what the provider does."""
    import aiohttp

    endpoint, key = Endpoint(url, options), key or next(iter(options.keys), None)
    deadline = asyncio.get_running_loop().time() + PROBE_S
    try:
        async with (
            asyncio.timeout_at(deadline),
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False) as session,
        ):
            status, body = await _get(session, endpoint, "/models", endpoint.list_headers(key), deadline)
            check = _KEY_CHECKS.get(urlsplit(endpoint.base).hostname or "")
            if is_answer(status) and key and check:
                checked, refusal = await _get(session, endpoint, check, endpoint.headers(key), deadline)
                status, body = (status, body) if is_answer(checked) else (checked, refusal)
    except ChatFailed as failed:
        return Probe(error=failed.fault.message)
    except TimeoutError:
        return Probe(error=_describe_timeout(), hint=advise_on_silence(url))
    except (aiohttp.ClientError, OSError, ValueError) as error:
        cause = explain_connection_error(error, url)
        return Probe(error=unreachable_provider("", cause.reason).fault.message, hint=cause.advice)
    if not is_answer(status):
        return Probe(
            error=describe_refusal("", read_refusal(status, body)),
            hint=_hint_at_refusal(status, has_key=bool(key)),
            status=status,
        )
    return _parse_models(body, status)


async def _get(
    session: "aiohttp.ClientSession", endpoint: Endpoint, path: str, headers: dict[str, str], deadline: float
) -> tuple[int, bytes]:
    address = endpoint.address(path)
    async with session.get(address, headers=headers, proxy=endpoint.proxy, allow_redirects=False) as got:
        body = await ResponseBody("", got).read_all(MAX_LIST, deadline + PROBE_S, _describe_timeout)
        return got.status, body


def _hint_at_refusal(status: int, *, has_key: bool) -> str:
    """Return what to do about a status other than 2xx."""
    match status:
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN if has_key:
            return Message(
                "Copy the key again, and check that it belongs to this address: a provider with several regions has "
                "separate keys for them."
            )
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            return Message("This provider needs a key: enter it.")
        case HTTPStatus.PAYMENT_REQUIRED | HTTPStatus.TOO_MANY_REQUESTS:
            return Message("The key is known, but its credit or its rate limit is used up.")
        case HTTPStatus.NOT_FOUND | HTTPStatus.METHOD_NOT_ALLOWED:
            return Message(
                "Check the path of the address, which often ends in /v1. If the provider has no list of models, enter "
                "their names yourself."
            )
        case _:
            return advise_on_status(status)


def _describe_timeout() -> str:
    return Message("it did not answer within {seconds:g} s", seconds=PROBE_S)


def _parse_models(body: bytes, status: int) -> Probe:
    try:
        answer = parse_provider_json(body) if len(body) <= MAX_LIST else None
    except ValueError:
        return Probe(
            error=Message("it answered with something that is no JSON: is this the address of a model provider?"),
            hint=_hint_at_refusal(HTTPStatus.NOT_FOUND, has_key=False),
            status=status,
        )
    listed = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        return Probe(
            error=Message("its answer has no list of models: is this the address of a model provider?"),
            hint=_hint_at_refusal(HTTPStatus.NOT_FOUND, has_key=False),
            status=status,
        )
    names = (one.get("id") for one in listed[:_MAX_MODELS] if isinstance(one, dict))
    return Probe(models=tuple(name for name in names if isinstance(name, str)), status=status)
