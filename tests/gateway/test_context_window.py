"""Conversations that outgrow the context of their model: what is left out, when, and what stays the same."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FakeTool
from tests.gateway.drawing import asks_natively
from tests.gateway.serving import ME, Gateway, gateway, request
from tests.gateway.upstream import Script, says
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.faults import refused_request
from toolyard.gateway.offer_policy import is_tool_refusal
from toolyard.gateway.providers.model_windows import find_well_known, read_window
from toolyard.gateway.turns.context_window import read_overflow
from toolyard.protocol.tool import Checkpoint, Result, Risk, ToolCall
from toolyard.provider_settings import ProviderOptions

LINE = "The quick brown fox jumps over the lazy dog, number {}.\n"
pytestmark = pytest.mark.requirement("window:fits")


def file_text(size: int) -> str:
    lines = (LINE.format(number) for number in range(size // len(LINE) + 1))
    return "".join(lines)[:size]


class Model:
    """A provider whose model takes ``window`` tokens, each of four bytes, and refuses more as OpenAI does."""

    def __init__(self, window: int, calls: int = 1, tool: str = "Look") -> None:
        self.window, self.calls, self.tool = window, calls, tool
        self.is_native = True
        self.refused = 0

    def __call__(self, body: dict[str, Any]) -> Script:
        tokens = len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()) // 4
        if tokens > self.window:
            self.refused += 1
            text = (
                f"This model's maximum context length is {self.window} tokens. However, your messages resulted in "
                f"{tokens} tokens ({tokens - 500} in the messages, 500 in the functions). Please reduce the length."
            )
            error = {"message": text, "type": "invalid_request_error", "code": "context_length_exceeded"}
            return Script([json.dumps({"error": error}).encode()], status=400, kind="application/json")
        since = [one["role"] for one in body["messages"]]
        rounds = since[::-1].index("user") // 2 if self.is_native else _text_rounds(body)
        if rounds >= self.calls:
            return says(f"Read it all, message {len(since)}.", stream=False)
        if self.is_native:
            return asks_natively(body, self.tool, text="I look.", reasoning="It needs a look.")
        return says(f"I look.\n{request(self.tool)}", stream=False)


def _text_rounds(body: dict[str, Any]) -> int:
    last = next(at for at, one in enumerate(reversed(body["messages"])) if _is_question(one))
    return last // 2


def _is_question(message: dict[str, Any]) -> bool:
    return message["role"] == "user" and str(message["content"]).startswith("Question")


def add_look(one: Gateway, size: int, *, risk: Risk = Risk.READ) -> None:
    async def look(_: ToolCall, __: Checkpoint) -> Result:
        return Result(data={}, text=file_text(size))

    one.yard.tools.add(FakeTool(look, name="Look", risk=risk))


async def talk(one: Gateway, turns: int, **more: Any) -> list[dict[str, Any]]:
    """Talk for so many turns as clients do, with nothing but texts; the answers."""
    history: list[Any] = []
    answers = []
    for number in range(turns):
        history.append({"role": "user", "content": f"Question {number}?"})
        body = {"model": "scripted", "messages": list(history), **more}
        run = await one.chat.complete(ClientRequest(body, caller=ME))
        answers.append(answer := json.loads(run.body))
        if "error" in answer:
            break
        history.append({"role": "assistant", "content": answer["choices"][0]["message"]["content"]})
    return answers


def shared_parts(raw: list[bytes]) -> list[float]:
    """How much of each request is the unchanged beginning of the one before, as a share of that one."""
    shares = []
    for before, after in pairwise(raw):
        old, new = before.rstrip(b"]}"), after
        same = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        shares.append(same / len(old))
    return shares


def chats(one: Gateway) -> list[bytes]:
    """What was sent, messages only: tools and further fields stand behind them in JSON."""
    return [json.dumps(body["messages"], ensure_ascii=False).encode() for body in one.upstream.bodies]


@pytest.mark.requirement("window:prefix")
@pytest.mark.parametrize("offer", ["native", "text"])
async def test_over_thirty_turns_each_request_begins_with_the_one_before_but_for_a_few_steps(
    tmp_path: Path, offer: str
) -> None:
    model = Model(75_000)
    model.is_native = offer == "native"
    settings = {"upstream_options": ProviderOptions(context_window=75_000)}
    async with gateway(tmp_path, model, settings=settings) as one:
        add_look(one, 28_000)
        answers = await talk(one, 30, toolyard={"offer": offer})
        shares = shared_parts(chats(one))
    assert all("choices" in answer for answer in answers)
    assert model.refused == 0
    steps = [share for share in shares if share < 0.95]
    assert 2 <= len(steps) <= 8
    assert len(shares) == 59
    left_out = [
        m["content"] for m in one.upstream.bodies[-1]["messages"] if "Left out to make room" in str(m["content"])
    ]
    assert left_out
    assert all("Look" in text and len(text) < 200 for text in left_out)


@pytest.mark.parametrize("knows", ["setting", "list", "refusal"])
@pytest.mark.parametrize("stream", [False, True])
async def test_three_turns_that_read_thirty_kilobytes_end_well_at_eight_thousand_tokens(
    tmp_path: Path, knows: str, stream: bool
) -> None:
    model = Model(8_192)
    settings = {"upstream_options": ProviderOptions(context_window=8_192)} if knows == "setting" else {}
    async with gateway(tmp_path, model, settings=settings) as one:
        if knows == "list":
            listed = {"data": [{"id": "scripted", "max_model_len": 8_192}]}
            one.upstream.models = Script([json.dumps(listed).encode()], kind="application/json")
            await one.chat.models()
        add_look(one, 30_000)
        if stream:
            heard = await one.stream("Question 0?")
            assert "Read it all" in heard.text
            assert not heard.errors
        answers = await talk(one, 3)
    assert [answer["choices"][0]["message"]["content"][-3:] for answer in answers]
    assert model.refused == (1 if knows == "refusal" else 0)


async def test_a_single_result_is_cut_to_what_fits_and_says_how_to_read_on(tmp_path: Path) -> None:
    settings = {"upstream_options": ProviderOptions(context_window=8_192)}
    async with gateway(tmp_path, Model(8_192), settings=settings) as one:
        add_look(one, 30_000)
        await talk(one, 1)
        result = one.upstream.bodies[-1]["messages"][-1]
    assert result["role"] == "tool"
    assert "The quick brown fox jumps over the lazy dog, number 20." in result["content"]
    assert "more characters do not fit your context." in result["content"][-200:]
    assert "go on from here" in result["content"][-200:]
    assert len(result["content"]) > 10_000


async def test_ten_rounds_of_one_turn_do_not_carry_all_their_results_to_the_last(tmp_path: Path) -> None:
    settings = {"upstream_options": ProviderOptions(context_window=32_000)}
    model = Model(32_000, calls=10)
    async with gateway(tmp_path, model, settings=settings) as one:
        add_look(one, 28_000)
        (answer,) = await talk(one, 1)
    assert "choices" in answer
    assert model.refused == 0
    assert max(map(len, one.upstream.raw)) < 32_000 * 4
    first, *_, last = [m["content"] for m in one.upstream.bodies[-1]["messages"] if m["role"] == "tool"]
    assert first.startswith("[Left out to make room: the result of Look, 28")
    assert first.endswith("Call it again if you need it.]")
    assert len(last) == 28_000, "the same call again, to see it once more"


async def test_without_any_knowledge_256_kibibytes_of_results_are_sent(tmp_path: Path) -> None:
    async with gateway(tmp_path, Model(10**9, calls=10)) as one:
        add_look(one, 28_000)
        await talk(one, 2)
        sizes = [sum(len(m["content"]) for m in b["messages"] if m["role"] == "tool") for b in one.upstream.bodies]
    assert max(sizes) < 256 * 1024 + 28_500
    assert max(sizes) > 200_000


async def test_the_result_of_a_call_that_had_an_effect_keeps_its_beginning_and_is_not_to_be_repeated(
    tmp_path: Path,
) -> None:
    settings = {"upstream_options": ProviderOptions(context_window=16_000), "approval_mode": "auto"}
    async with gateway(tmp_path, Model(16_000, calls=4), settings=settings) as one:
        add_look(one, 24_000, risk=Risk.WRITE)
        await talk(one, 1)
        first = next(m for m in one.upstream.bodies[-1]["messages"] if m["role"] == "tool")["content"]
    assert "It has run, and began: " in first
    assert "quick brown fox" in first
    assert "Call it again" not in first


async def test_what_was_left_out_is_told_in_the_language_of_the_conversation(tmp_path: Path) -> None:
    settings = {"upstream_options": ProviderOptions(context_window=16_000)}
    async with gateway(tmp_path, Model(16_000, calls=4), settings=settings) as one:
        add_look(one, 24_000)
        body: Any = {"model": "scripted", "messages": [{"role": "user", "content": "请把这些文件都读一遍，谢谢。"}]}
        await one.chat.complete(ClientRequest(body, caller=ME))
        first = next(m for m in one.upstream.bodies[-1]["messages"] if m["role"] == "tool")["content"]
    assert first.startswith("[为节省上下文已省略：Look 的结果")


@pytest.mark.requirement("window:overflow")
@pytest.mark.parametrize("in_round", [1, 2])
async def test_what_cannot_be_shortened_fails_with_the_providers_own_code_in_every_round(
    tmp_path: Path, in_round: int
) -> None:
    asked: list[dict[str, Any]] = []

    def answer(body: dict[str, Any]) -> Script:
        asked.append(body)
        if len(asked) < in_round:
            return asks_natively(body, "Look")
        error = {"message": "prompt is too long: 9000 tokens > 8192 maximum", "code": "context_length_exceeded"}
        return Script([json.dumps({"error": error}).encode()], status=413, kind="application/json")

    async with gateway(tmp_path, answer) as one:
        add_look(one, 100)
        run = await one.chat.complete(
            ClientRequest({"model": "scripted", "messages": [{"role": "user", "content": "Hi."}]}, caller=ME)
        )
    assert run.status == 413
    assert json.loads(run.body)["error"]["code"] == "context_length_exceeded"
    assert len(asked) == in_round  # nothing of ours could be left out, so it was not asked once more


@pytest.mark.requirement("window:overflow")
async def test_an_overflow_that_a_stream_reports_is_answered_with_less_too(tmp_path: Path) -> None:
    error = {"message": "maximum context length is 4096 tokens", "code": "context_length_exceeded"}
    scripts = iter(range(9))

    def answer(body: dict[str, Any]) -> Script:
        match next(scripts):
            case 0:
                return asks_natively(body, "Look")
            case 1:
                return Script([b"data: " + json.dumps({"error": error}).encode() + b"\n\n"])
            case _:
                return says("Fine.", stream=True)

    async with gateway(tmp_path, answer) as one:
        add_look(one, 30_000)
        heard = await one.stream("Hi.")
        sizes = [len(raw) for raw in one.upstream.raw]
    assert "Fine." in heard.text
    assert not heard.errors
    assert sizes[2] < sizes[1] / 2


@pytest.mark.requirement("window:rejects")
def test_an_overflow_or_missing_reasoning_is_no_refusal_of_tools() -> None:
    for text in (
        "This model's maximum context length is 8192 tokens, you requested 9000 (500 in the functions)",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        "Invalid 'tool_choice' must follow messages",
    ):
        body = json.dumps({"error": {"message": text}}).encode()
        refused = is_tool_refusal(refused_request("p", 400, body).fault)
        assert refused == text.startswith("Invalid"), text


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("maximum context length is 8192 tokens. However, your messages resulted in 9,112 tokens", (8192, 9112)),
        ("maximum context length is 4096 tokens. However, you requested 5000 tokens", (4096, 5000)),
        ("prompt is too long: 210000 tokens > 200000 maximum", (200_000, 210_000)),
        ('the request exceeds the available context size {"n_prompt_tokens": 9000, "n_ctx": 8192}', (8192, 9000)),
        ("Input is too long for the requested model.", (0, 0)),
    ],
)
def test_a_refusal_teaches_the_window_and_the_tokens(words: str, found: tuple[int, int]) -> None:
    assert read_overflow(words) == found


def test_windows_are_read_from_lists_of_models_and_known_of_famous_ones() -> None:
    assert read_window({"id": "m", "max_model_len": 32_768}) == 32_768
    assert read_window({"id": "m", "context_length": 131_072}) == 131_072
    assert read_window({"id": "m", "meta": {"n_ctx": 4096}}) == 4096
    assert read_window({"id": "m", "context_length": "big"}) is None
    known = {name: find_well_known(name) for name in ("gpt-4o-mini", "openai/gpt-4.1", "gpt-4", "qwen3:8b", "mine")}
    assert known == {
        "gpt-4o-mini": 128_000,
        "openai/gpt-4.1": 1_047_576,
        "gpt-4": 8_192,
        "qwen3:8b": None,
        "mine": None,
    }
