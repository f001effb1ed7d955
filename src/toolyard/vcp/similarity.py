"""The similarity of descriptions with a conversation, by the embeddings that the installation's settings name.

VCPToolBox opens folds and toolboxes by it: the cosine of a description and of 0.7 parts of the last user message with
0.3 parts of the last answer (``mainSearchWeights`` of ``rag_params.json`` changes the parts). ``API_URL``, ``API_Key``
and ``WhitelistEmbeddingModel`` of ``config.env`` say who is asked, and only while RAGDiaryPlugin is switched on, as
there. Vectors are kept in memory. After a failure nobody is asked for ``_PAUSE_S``, and folds show their base block.
"""

import asyncio
import json
import logging
import math
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import aiohttp

from toolyard.dialects.vcp_install import read_search_weights
from toolyard.gateway.reply.chunks import read_text
from toolyard.gateway.vcp_blocks import PAYLOAD
from toolyard.protocol.json import Json
from toolyard.protocol.requests.marks import END, START
from toolyard.vcp.folds import Similarity
from toolyard.vcp.prompt_files import PromptFiles

PLUGIN: Final = "Plugin/RAGDiaryPlugin/plugin-manifest.json"
PARAMETERS: Final = "rag_params.json"
_TIMEOUT_S = 10.0
_PAUSE_S = 60.0
_MAX_TEXT = 8_000  # characters of a text that is compared
_MAX_ANSWER = 4 * 2**20
_MAX_KEPT = 2_000  # vectors
_EXAMPLE = "_SUCH_AS_"  # in values of config.env.example
_SYSTEM = re.compile(r"\s*\[系统(?!通知)[^\]]*\]")
_NOTICE = re.compile(r"\[系统通知[:：]?\].*?\[系统通知结束\]", re.DOTALL)
_CALL = re.compile(re.escape(START) + r".*?(?:" + re.escape(END) + r"|\Z)", re.DOTALL)
_TAG = re.compile(r"<[^<>]{0,2000}>")
_log = logging.getLogger(__name__)
Vector = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Provider:
    url: str
    key: str
    model: str


class Similarities:
    def __init__(self, files: PromptFiles, monotonic: Callable[[], float], mask: Callable[[str], str] = str) -> None:
        """``mask`` hides secrets in what is logged."""
        self._files, self._monotonic, self._mask = files, monotonic, mask
        self._vectors: OrderedDict[tuple[str, str], Vector] = OrderedDict()  # by model and text
        self._paused_until = -math.inf

    def compare(self, messages: Sequence[Json]) -> Similarity:
        """Return the similarity with a conversation, for another thread than that of the running loop."""
        loop = asyncio.get_running_loop()
        conversation: list[Vector | None] = []  # once it is known

        async def measure(description: str) -> float | None:
            if not conversation:
                conversation.append(await self._embed_conversation(messages))
            whole = conversation[0]
            own = await self._embed(description) if whole is not None else None
            return None if whole is None or own is None else _cosine(own, whole)

        def compare(description: str) -> float | None:
            future = asyncio.run_coroutine_threadsafe(measure(description), loop)
            try:
                return future.result(3 * _TIMEOUT_S)
            except FutureTimeoutError:
                future.cancel()
                return None

        return compare

    async def _embed_conversation(self, messages: Sequence[Json]) -> Vector | None:
        question, answer = _find_texts(messages)
        if not question:
            return None
        vectors = [await self._embed(question), await self._embed(answer) if answer else None]
        known = [(vector, weight) for vector, weight in zip(vectors, self._read_weights(), strict=True) if vector]
        if vectors[0] is None or len({len(vector) for vector, _ in known}) != 1:
            return None
        return tuple(sum(vector[at] * weight for vector, weight in known) for at in range(len(vectors[0])))

    async def _embed(self, text: str) -> Vector | None:
        provider = self._find_provider()
        text = text.strip()[:_MAX_TEXT]
        if provider is None or not text:
            return None
        key = (provider.model, text)
        if key in self._vectors:
            self._vectors.move_to_end(key)
            return self._vectors[key]
        if self._monotonic() < self._paused_until:
            return None
        try:
            vector = await _ask(provider, text)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            self._paused_until = self._monotonic() + _PAUSE_S
            problem = self._mask(str(error) or type(error).__name__)
            _log.warning("folds of VCPToolBox show their base block: no embedding of %s: %s", provider.model, problem)
            return None
        self._vectors[key] = vector
        if len(self._vectors) > _MAX_KEPT:
            self._vectors.popitem(last=False)
        return vector

    def _find_provider(self) -> _Provider | None:
        values = self._files.variables
        url, key, model = (values.get(name, "") for name in ("API_URL", "API_Key", "WhitelistEmbeddingModel"))
        if not (url.startswith(("http://", "https://")) and key and model) or _EXAMPLE in url + key:
            return None
        return _Provider(url.rstrip("/"), key, model) if (self._files.root / PLUGIN).exists() else None

    def _read_weights(self) -> tuple[float, float]:
        try:
            return read_search_weights(json.loads((self._files.root / PARAMETERS).read_bytes()))
        except (OSError, ValueError, RecursionError):
            return read_search_weights(None)


async def _ask(provider: _Provider, text: str) -> Vector:
    """Return the embedding of a text. Raises ClientError, OSError or ValueError."""
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    headers = {"Authorization": f"Bearer {provider.key}"}
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.post(
            f"{provider.url}/v1/embeddings",
            json={"model": provider.model, "input": [text]},
            headers=headers,
            allow_redirects=False,
        ) as response,
    ):
        if response.status != HTTPStatus.OK:
            raise ValueError(f"status {response.status}")
        raw = b""
        async for piece in response.content.iter_chunked(64 * 1024):
            raw += piece
            if len(raw) > _MAX_ANSWER:
                raise ValueError("the answer is too long")
    try:
        return tuple(float(number) for number in json.loads(raw)["data"][0]["embedding"])
    except (KeyError, IndexError, TypeError, RecursionError) as error:
        raise ValueError("the answer has no embedding") from error


def _find_texts(messages: Sequence[Json]) -> tuple[str, str]:
    """Return the last text that a user wrote, and the last answer, without markup and calls."""
    question = answer = ""
    for message in reversed(messages):
        if not isinstance(message, dict):
            continue
        text = read_text(message.get("content"))
        if message.get("role") == "assistant" and not answer:
            answer = _clean(text)
        is_written = not _SYSTEM.match(text) and not text.lstrip().startswith(PAYLOAD)
        if message.get("role") == "user" and not question and is_written:
            question = _clean(_NOTICE.sub("", text))
        if question and answer:
            break
    return question, answer


def _clean(text: str) -> str:
    return _TAG.sub("", _CALL.sub("", text)).strip()


def _cosine(left: Vector, right: Vector) -> float:
    length = math.hypot(*left) * math.hypot(*right)
    return sum(a * b for a, b in zip(left, right, strict=False)) / length if length else 0.0
