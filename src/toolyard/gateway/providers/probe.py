"""Probes a model provider: one request for its models, and its exact words when it refuses.

Redirects are not followed, so a key goes to the origin it is meant for and nowhere else. At most ``PROBE_S`` seconds
and 4 MiB.
"""

import asyncio
import errno
import os
from dataclasses import dataclass
from typing import Final

from toolyard.gateway.faults import ChatFailed, refused_request, unreachable_provider
from toolyard.gateway.providers.endpoint import Endpoint
from toolyard.gateway.providers.provider_json import parse_provider_json
from toolyard.gateway.providers.response_body import ResponseBody
from toolyard.gateway.providers.upstream import MAX_LIST, is_answer
from toolyard.message import Message
from toolyard.provider_settings import ProviderOptions

PROBE_S: Final = 15.0
_MAX_MODELS = 2000


@dataclass(frozen=True, slots=True)
class Probe:
    models: tuple[str, ...] = ()
    error: str = ""  # empty: it answered


async def probe(url: str, key: str | None, options: ProviderOptions = ProviderOptions()) -> Probe:  # noqa: B008 frozen
    """Request the provider's list of models. Never raises for what the provider does."""
    import aiohttp

    endpoint = Endpoint(url, options)
    deadline = asyncio.get_running_loop().time() + PROBE_S
    try:
        async with (
            asyncio.timeout_at(deadline),
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False) as session,
            session.get(
                endpoint.address("/models"),
                headers=endpoint.headers(key or next(iter(options.keys), None)),
                proxy=endpoint.proxy,
                allow_redirects=False,
            ) as got,
        ):
            body = await ResponseBody("", got).read_all(MAX_LIST, deadline + PROBE_S, _describe_timeout)
            status = got.status
    except ChatFailed as failed:
        return Probe(error=failed.fault.message)
    except TimeoutError:
        return Probe(error=_describe_timeout())
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return Probe(error=unreachable_provider("", _describe_error(error)).fault.message)
    if not is_answer(status):
        return Probe(error=_describe_refusal(status, body))
    return _parse_models(body)


def _describe_error(error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ECONNREFUSED:
        return Message("provider.connection_refused", "Connection refused")
    return os.strerror(number) if number is not None and number > 0 else str(error) or type(error).__name__


def _describe_timeout() -> str:
    return Message("provider.did_not_answer", "it did not answer within {seconds:g} s", seconds=PROBE_S)


def _describe_refusal(status: int, body: bytes) -> str:
    fault = refused_request("", status, body).fault
    message = fault.own.get("message")
    return (
        Message("provider.answered_with_message", "it answered {status}: {message}", status=status, message=message)
        if isinstance(message, str) and message
        else fault.message
    )


def _parse_models(body: bytes) -> Probe:
    try:
        answer = parse_provider_json(body) if len(body) <= MAX_LIST else None
    except ValueError:
        return Probe(
            error=Message(
                "provider.answer_not_json",
                "it answered with something that is no JSON: is this the address of a model provider?",
            )
        )
    listed = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        return Probe(
            error=Message(
                "provider.answer_without_models",
                "its answer has no list of models: is this the address of a model provider?",
            )
        )
    names = (one.get("id") for one in listed[:_MAX_MODELS] if isinstance(one, dict))
    return Probe(models=tuple(name for name in names if isinstance(name, str)))
