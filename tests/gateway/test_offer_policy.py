"""The offers of chat requests, through the whole gateway."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.built_in_tools import BUILT_IN_TOOLS, READ_ONLY_TOOLS
from tests.gateway.serving import ME, Gateway, StreamedAnswer, chat_body, gateway, request
from tests.gateway.upstream import DONE, Script, chunk, completion, replies, says
from tests.plugins.folders import make_plugin
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.faults import refused_request
from toolyard.gateway.offer_policy import is_tool_refusal
from toolyard.protocol.access import Mode
from toolyard.protocol.json import JsonObject
from toolyard.settings import OfferMode

WEATHER: list[JsonObject] = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
BUILT_IN = sorted({*BUILT_IN_TOOLS, "Say"} - {"FileOperator", "ToolSearch"})  # "Say" is the gateway's of the tests
SHIPPED = ["EchoPlugin", "Plotter", "SciCalculator", "Timelapse"]  # the others need configuration
REFUSED: dict[str, tuple[int, str]] = {
    "ollama": (400, '{"error":{"message":"stablelm2:latest does not support tools","type":"api_error"}}'),
    "vllm": (
        400,
        '{"object":"error","message":"\\"auto\\" tool choice requires --enable-auto-tool-choice","code":400}',
    ),
    "openrouter": (404, '{"error":{"message":"No endpoints found that support tool use.","code":404}}'),
    "deepseek": (400, '{"error":{"message":"deepseek-reasoner does not support Function Calling"}}'),
    "deepinfra": (405, '{"error":{"message":"Tool calling is not supported for model: M"}}'),
    "strict": (422, '{"detail":[{"loc":["body","tools"],"msg":"Extra inputs are not permitted"}]}'),
    "llama.cpp": (500, '{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}'),
}


def names(body: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools", [])]


def call(name: str, stream: bool = True, **arguments: Any) -> Script:
    function = {"name": name, "arguments": json.dumps(arguments)}
    entry = {"id": "c1", "type": "function", "function": function}
    if stream:
        return Script([chunk({"tool_calls": [{"index": 0, **entry}]}), chunk({}, "tool_calls"), DONE])
    message = {"role": "assistant", "content": None, "tool_calls": [entry]}
    return Script([completion(message, "tool_calls")], kind="application/json")


def system_of(body: dict[str, Any]) -> str:
    first = body["messages"][0]
    return str(first["content"]) if first["role"] == "system" else ""


async def sent(one: Gateway, *, key: OfferMode | None = None, header: str = "", **more: Any) -> dict[str, Any]:
    headers = {"x-toolyard-offer": header} if header else {}
    await one.chat.complete(ClientRequest(chat_body("Hi.", **more), caller=ME, headers=headers, key_offer=key))
    return one.upstream.bodies[-1]


@pytest.mark.requirement("offer:default", "offer:bounds")
async def test_a_request_without_tools_is_offered_ours_and_else_reaches_the_model_as_it_came(tmp_path: Path) -> None:
    raw = b'{ "model":"m", "temperature": 1.50, "messages":[{"role":"user","content":"\\u00e9"}], "x": [1e2] } \n'
    async with gateway(tmp_path, replies("Hi.")) as one:
        await one.chat.complete(ClientRequest(json.loads(raw), caller=ME, raw=raw))
        assert names(one.upstream.bodies[0]) == [*BUILT_IN, *SHIPPED]
        start = raw.rstrip()[:-1]
        assert one.upstream.raw[0].startswith(start + b',"tools":[{"type":"function"')
        assert {key: value for key, value in one.upstream.bodies[0].items() if key != "tools"} == json.loads(raw)


@pytest.mark.requirement("offer:default")
async def test_what_is_nearest_to_the_request_decides(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("Hi."), settings={"offer": OfferMode.NONE}) as one:
        assert names(await sent(one)) == []
        assert names(await sent(one, key=OfferMode.NATIVE)) != []
        assert names(await sent(one, key=OfferMode.NATIVE, model="scripted+plain")) == []
        assert names(await sent(one, header="Native", model="scripted+plain")) != []
        assert names(await sent(one, header="native", toolyard={"offer": "none"})) == []
        assert "# Tools" in system_of(await sent(one, header="native", toolyard={"offer": "text"}))
        refused = await one.complete(toolyard={"offer": "all"})
        assert refused["error"]["message"] == "'offer' is one of auto, native, text, none, not 'all'"


@pytest.mark.requirement("offer:nothing")
@pytest.mark.parametrize(
    "more",
    [
        {"system": "Be kind. {{VCPAllTools}}"},
        {"system": "{{VCPRead}}"},
        {"system": "[[VCPToolUse=Forbidden]]"},
        {"tool_choice": "none"},
        {"n": 2},
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}},
    ],
    ids=str,
)
@pytest.mark.parametrize("offer", ["auto", "native", "text"])
async def test_nothing_is_offered_where_it_would_disturb(tmp_path: Path, offer: str, more: dict[str, Any]) -> None:
    async with gateway(tmp_path, replies("Hi.")) as one:
        body = await sent(one, toolyard={"offer": offer}, **more)
        assert names(body) == []
        assert "# Tools" not in system_of(body)


@pytest.mark.requirement("offer:nothing")
async def test_a_request_that_wants_nothing_goes_on_byte_for_byte(tmp_path: Path) -> None:
    raw = b'{ "model":"m",  "messages":[{"role":"user","content":"Hi"}]}\n'
    async with gateway(tmp_path, replies("Hi."), settings={"offer": OfferMode.NONE}) as one:
        await one.chat.complete(ClientRequest(json.loads(raw), caller=ME, raw=raw))
        assert one.upstream.raw == [raw]


@pytest.mark.requirement("offer:configured")
async def test_a_tool_that_lacks_its_configuration_is_not_offered_until_it_has_it(tmp_path: Path) -> None:
    schema = {"NEEDY_KEY": {"type": "string", "required": True}, "OTHER": {"type": "string"}}
    folder = make_plugin(tmp_path / "plugins", "Needy", configSchema=schema)
    make_plugin(tmp_path / "plugins", "Ready", configSchema={"OTHER": {"type": "string"}})
    async with gateway(tmp_path, replies("Hi."), plugins=(tmp_path / "plugins",)) as one:

        async def offered() -> list[bool]:
            listed = system_of(await sent(one, system="{{VCPAllTools}}"))
            by_name = names(await sent(one, toolyard={"tools": ["Needy", "Ready"]}))
            text = system_of(await sent(one, toolyard={"offer": "text"}))
            places: list[Any] = [names(await sent(one)), by_name, listed, text]
            assert all("Ready" in place for place in places)
            return ["Needy" in place for place in places]

        assert await offered() == [False] * 4
        assert "Needy" in system_of(await sent(one, system="{{VCPNeedy}}"))  # its owner asked for it by name
        (folder / "config.env").write_text("NEEDY_KEY=x\n")
        one.yard.plugins.plugins.refresh()
        assert await offered() == [True] * 4
        (folder / "config.env").unlink()
        one.yard.plugins.plugins.refresh()
        assert await offered() == [False] * 4
        one.yard.plugins.use_config(
            replace(
                one.yard.config,
                environ={"NEEDY_KEY": "shared"},
                settings=replace(one.yard.config.settings, shared_keys={"Needy": ("NEEDY_KEY",)}),
            )
        )
        assert await offered() == [True] * 4


OFF: dict[str, dict[str, Any]] = {
    "alias": {"model": "scripted+plain"},
    "option": {"toolyard": {"offer": "none"}},
    "header": {"header": "none"},
    "key": {"key": OfferMode.NONE},
    "setting": {},
}
BLOCK = request(text="hello")


@pytest.mark.requirement("offer:off")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("where", OFF)
async def test_off_means_that_blocks_and_native_calls_are_only_passed_on(
    tmp_path: Path, where: str, stream: bool
) -> None:
    settings = {"offer": OfferMode.NONE if where == "setting" else OfferMode.AUTO}
    text = f"Do it so:\n{BLOCK}\n"
    answers = [says(text, stream=stream), call("Say", stream, text="x")]
    async with gateway(tmp_path, answers, settings=settings) as one:
        heard = [await answer_of(one, stream, **OFF[where]) for _ in answers]
        assert (one.ran, len(one.upstream.bodies)) == ([], 2)
        assert text_of(heard[0]) == text
        assert b'"name": "Say"' in heard[1]


@pytest.mark.requirement("offer:off")
@pytest.mark.parametrize("where", OFF)
async def test_off_means_that_the_conversation_is_passed_on_as_it_was_sent(tmp_path: Path, where: str) -> None:
    link = f"![a](https://yard.example.org/media/{'a' * 64}.png?expires=1&signature={'b' * 64})"
    off = OFF[where]
    async with gateway(tmp_path, replies(BLOCK, "I said hello.", "And so on.")) as one:
        answer = text_of(await answer_of(one, False))
        assert answer == "> ✓ Say: Said it.\n\nI said hello."  # the rounds behind it are remembered
        one.chat.offer_policy.default_mode = OfferMode.NONE if where == "setting" else OfferMode.AUTO
        told = [
            {"role": "system", "content": f"Say {BLOCK} [no placeholder]"},
            {"role": "user", "content": "Hi."},
            {"role": "assistant", "content": answer},
            {"role": "user", "content": "And?"},
            {"role": "assistant", "content": f"{link} {{{{VCP_ASYNC_RESULT::P::1}}}} {BLOCK}"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {}}]},
            {"role": "tool", "tool_call_id": "c", "content": "x"},
            {"role": "user", "content": "{{Date}}"},
        ]
        await answer_of(one, False, **off, messages=told)
        assert one.upstream.bodies[-1]["messages"] == told


@pytest.mark.requirement("offer:off")
async def test_a_prompt_that_lists_tools_itself_works_with_the_setting_off_but_not_when_the_request_says_so(
    tmp_path: Path,
) -> None:
    def answer(body: dict[str, Any]) -> Script:
        return says(BLOCK if body["messages"][-1]["content"] == "Hi." else "Done.", stream=bool(body.get("stream")))

    async with gateway(tmp_path, answer, settings={"offer": OfferMode.NONE}) as one:
        await answer_of(one, False, system="{{VCPSay}}")
        assert len(one.ran) == 1
        await answer_of(one, False, system="You are kind. {{VCPAllTools}}", model="scripted+plain")
        assert (len(one.ran), system_of(one.upstream.bodies[-1])) == (1, "You are kind. ")
        await answer_of(one, False, toolyard={"offer": "auto"}, tool_choice="none")
        assert len(one.ran) == 1


async def answer_of(
    one: Gateway, stream: bool, *, key: OfferMode | None = None, header: str = "", messages: Any = None, **more: Any
) -> bytes:
    body = chat_body("Hi.", stream=stream, **more)
    body = {**body, "messages": messages} if messages else body
    headers = {"x-toolyard-offer": header} if header else {}
    run = await one.chat.complete(ClientRequest(body, caller=ME, headers=headers, key_offer=key))
    return run.body if run.pieces is None else b"".join([piece async for piece in run.pieces])


def text_of(raw: bytes) -> str:
    if raw.startswith(b"{"):
        return str(json.loads(raw)["choices"][0]["message"]["content"])
    return StreamedAnswer.from_bytes(raw).text


@pytest.mark.requirement("offer:nothing", "offer:record")
async def test_the_built_in_guide_is_offered_nothing(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("Hi.")) as one:
        run = await one.chat.complete(ClientRequest(chat_body("Hi", model="tour+tools"), caller=ME))
        record = one.chat.record(run.id, ME)
        assert record is not None
        assert record["offer"] == {"mode": "none", "tools": [], "tokens": 0, "left_out": [], "searchable": 0}


@pytest.mark.requirement("offer:own-tools")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("listed", ["write", None], ids=["named", "without a name"])
async def test_a_native_name_is_the_clients_unless_ours_were_offered(
    tmp_path: Path, stream: bool, listed: str | None
) -> None:
    tools = [{"type": "function", "function": {"name": listed}} if listed else {"type": "web_search"}]
    async with gateway(tmp_path, [call("Say", stream, text="x")]) as one:
        if stream:
            heard = await one.stream(tools=tools)
            deltas = [choice["delta"] for event in heard.events for choice in event["choices"]]
            names = [call["function"]["name"] for delta in deltas for call in delta.get("tool_calls") or []]
        else:
            message = (await one.complete(tools=tools))["choices"][0]["message"]
            names = [call["function"]["name"] for call in message["tool_calls"]]
        assert (names, one.ran) == (["Say"], [])
        more: dict[str, Any] = {"stream": True} if stream else {}
        assert one.upstream.bodies == [chat_body("Hi.", tools=tools, **more)]


@pytest.mark.requirement("offer:own-tools")
@pytest.mark.parametrize("form", ["body", "alias", "key"])
async def test_a_request_with_its_own_tools_gets_ours_when_it_asks_and_its_names_stay_its_own(
    tmp_path: Path, form: str
) -> None:
    ways: dict[str, dict[str, Any]] = {
        "body": {"toolyard": {"offer": "native"}},
        "alias": {"model": "scripted+tools"},
        "key": {"key": OfferMode.NATIVE},
    }
    tools = [*WEATHER, {"type": "function", "function": {"name": "Read"}}]
    answers = [call("Say", False, text="x"), call("Read", False, path="a")]
    async with gateway(tmp_path, answers) as one:
        body = await sent(one, tools=tools, **ways[form])
        assert names(body)[:2] == ["weather", "Read"]
        assert sorted(names(body)) == sorted([*BUILT_IN, *SHIPPED, "weather"]), "Read is there once"
        assert body["model"] == "scripted"
        assert [call.arguments for call in one.ran] == [{"text": "x"}]
        assert len(one.upstream.bodies) == 2, "the second reply calls a tool of the client"


@pytest.mark.requirement("offer:own-tools")
async def test_a_setting_offers_nothing_to_a_request_with_its_own_tools(tmp_path: Path) -> None:
    for mode in OfferMode:
        async with gateway(tmp_path / mode, replies("Hi."), settings={"offer": mode}) as one:
            body = await sent(one, tools=WEATHER, toolyard={"offer": "auto"} if mode is OfferMode.AUTO else None)
            assert names(body) == ["weather"]
            assert system_of(body) == ""


@pytest.mark.requirement("offer:own-tools")
async def test_a_request_with_functions_of_the_old_form_gets_a_listing(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("Hi.")) as one:
        body = await sent(one, model="scripted+tools", functions=[{"name": "f", "parameters": {}}])
        assert "tools" not in body
        assert "# Tools" in system_of(body)


@pytest.mark.requirement("offer:default", "offer:native-text")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_tool_is_called_by_the_name_under_which_it_was_offered(tmp_path: Path, stream: bool) -> None:
    folder = make_plugin(tmp_path / "given", "My.Plugin", risk="read")
    (folder / "main.py").write_text('import json; print(json.dumps({"status": "success", "result": "done"}))')
    async with gateway(
        tmp_path, lambda body: asks_once(body, stream), plugins=(folder.parent,), settings={"approval_mode": Mode.AUTO}
    ) as one:
        await (one.stream() if stream else one.complete())
        first, second = one.upstream.bodies
        plain = next(name for name in names(first) if name.startswith("My_"))
        assert second["messages"][1]["tool_calls"][0]["function"]["name"] == plain
        assert second["messages"][2]["content"] == "done"
        assert names(second) == names(first), "what was offered is offered in every round"


def asks_once(body: dict[str, Any], stream: bool) -> Script:
    if len(body["messages"]) > 1:
        return says("Done.", stream=stream)
    return call(next(name for name in names(body) if name.startswith("My_")), stream)


@pytest.mark.requirement("offer:fallback", "offer:record")
@pytest.mark.parametrize("who", list(REFUSED))
@pytest.mark.parametrize("stream", [True, False])
async def test_a_model_that_refuses_tools_is_asked_again_with_the_listing(
    tmp_path: Path, who: str, stream: bool
) -> None:
    status, refusal = REFUSED[who]
    texts = [request(text="x"), "Done.", "Hi."]

    def answer(body: dict[str, Any]) -> Script:
        if "tools" in body:
            return Script([refusal.encode()], status=status, kind="application/json")
        return says(texts.pop(0) if len(texts) > 1 else texts[0], stream=stream)

    async with gateway(tmp_path, answer) as one:
        run = await one.chat.complete(ClientRequest(chat_body("Hi.", stream=stream, toolyard={"chat": "c"}), caller=ME))
        if run.pieces is not None:
            async for _ in run.pieces:
                pass
        *refused, listed, last = one.upstream.bodies
        assert refused
        assert all("tools" in body for body in refused)
        assert system_of(listed).startswith("# Tools\n\nYou can use the tools below.")
        assert "- Say: " in system_of(listed)
        assert system_of(last) == system_of(listed)
        assert [call.arguments for call in one.ran] == [{"text": "x"}]
        record = one.chat.record("c", ME)
        assert record is not None
        offer: Any = record["offer"]
        assert offer["mode"] == "text"
        assert "Say" in offer["tools"]
        before = len(one.upstream.bodies)
        await (one.stream() if stream else one.complete())
        assert ["tools" in body for body in one.upstream.bodies[before:]] == [False], "it is remembered"
        await (one.stream(model="another") if stream else one.complete(model="another"))
        assert "tools" in one.upstream.bodies[before + 1], "of that model only"


@pytest.mark.requirement("offer:fallback")
async def test_another_error_is_no_refusal_of_tools_and_native_means_native(tmp_path: Path) -> None:
    wrong = Script([b'{"error":{"message":"max_tokens is too large"}}'], status=400, kind="application/json")
    async with gateway(tmp_path, [wrong]) as one:
        assert (await one.complete())["error"]["message"] == "max_tokens is too large"
        assert len(one.upstream.bodies) == 1
    status, refusal = REFUSED["ollama"]
    async with gateway(tmp_path, [Script([refusal.encode()], status=status, kind="application/json")]) as one:
        assert "does not support tools" in (await one.complete(toolyard={"offer": "native"}))["error"]["message"]
        assert len(one.upstream.bodies) == 1


@pytest.mark.requirement("offer:fallback")
async def test_a_refusal_is_remembered_only_when_the_listing_was_taken(tmp_path: Path) -> None:
    status, refusal = REFUSED["ollama"]
    refused = Script([refusal.encode()], status=status, kind="application/json")
    async with gateway(tmp_path, [refused, refused, says("Hi.", stream=False)]) as one:
        assert "error" in await one.complete()
        await one.complete()
        assert ["tools" in body for body in one.upstream.bodies] == [True, False, True]


@pytest.mark.requirement("offer:text")
async def test_the_listing_stands_at_the_end_of_the_system_message_with_the_nonce(tmp_path: Path) -> None:
    kind = {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]}
    async with gateway(tmp_path, replies("Hi."), settings={"offer": OfferMode.TEXT, "request_nonce": True}) as one:
        listing = system_of(await sent(one, system="Be kind.")).removeprefix("Be kind.\n\n")
        assert listing.startswith("# Tools\n\n")
        assert "<<<[TOOL_REQUEST]>>>" not in listing
        assert "<<<[TOOL_REQUEST:" in listing
        body = await sent(one, messages=[kind, {"role": "user", "content": "Hi"}])
        assert body["messages"][0]["content"][0] == {"type": "text", "text": "Be kind."}
        assert body["messages"][0]["content"][1]["text"].startswith("# Tools\n\n")
        assert len(body["messages"]) == 2


@pytest.mark.requirement("offer:text")
@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("帮我看看 README.md 里的 TODO", "# 工具"),
        ("修复 tests/gateway/test_prompt.py bug", "# 工具"),
        ("What does 你好 mean?", "# Tools"),
        ("これはペンです。漢字", "# Tools"),
        ("42", "# Tools"),
    ],
)
async def test_the_listing_is_in_the_language_of_the_newest_user_message(tmp_path: Path, text: str, head: str) -> None:
    async with gateway(tmp_path, replies("Hi."), settings={"offer": OfferMode.TEXT}) as one:
        await one.complete(text)
        assert system_of(one.upstream.bodies[0]).startswith(head)


@pytest.mark.requirement("offer:text")
async def test_a_message_without_words_does_not_change_the_language(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "列出文件"}, {"role": "assistant", "content": "Fine."}]
    async with gateway(tmp_path, replies("Hi."), settings={"offer": OfferMode.TEXT}) as one:
        await one.complete(messages=[*messages, {"role": "user", "content": [{"type": "text", "text": "1 + 1 = ?"}]}])
        assert system_of(one.upstream.bodies[0]).startswith("# 工具")


@pytest.mark.requirement("offer:bounds")
async def test_only_what_a_chat_may_use_is_offered(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("Hi.")) as one:
        named = names(await sent(one, toolyard={"tools": ["Read", "FileOperator", "Nobody"]}))
        assert named == ["FileOperator", "Read"]
        looks = names(await sent(one, toolyard={"mode": "read-only"}))
        assert looks == [*sorted({*READ_ONLY_TOOLS, "Say"} - {"ToolSearch"}), "EchoPlugin", "Plotter", "SciCalculator"]
        assert "tools" not in await sent(one, toolyard={"tools": []})


@pytest.mark.requirement("offer:aliases")
async def test_models_are_listed_with_their_aliases_when_that_is_set(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("Hi.")) as one:
        assert [model["id"] for model in await one.chat.models()] == ["scripted", "tour"]
        one.chat.offer_policy.lists_aliases = True
        listed = [model["id"] for model in await one.chat.models()]
        assert listed == ["scripted", "tour", "scripted+tools", "scripted+plain"]
        assert (await sent(one, model="scripted+plain"))["model"] == "scripted"


@pytest.mark.requirement("offer:record")
async def test_the_record_shows_what_was_offered(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("Hi.")) as one:
        run = await one.chat.complete(ClientRequest(chat_body("Hi", toolyard={"tools": ["Read"]}), caller=ME))
        record = one.chat.record(run.id, ME)
        assert record is not None
        offer: Any = record["offer"]
        assert (offer["mode"], offer["tools"], offer["left_out"]) == ("native", ["Read"], [])
        assert 100 < offer["tokens"] < 300


@pytest.mark.requirement("offer:default")
async def test_the_official_client_streams_an_answer_that_used_an_offered_tool(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> Script:
        return says("The sum is 4.") if len(body["messages"]) > 1 else call("Say", text="4")

    async with gateway(tmp_path, answer, served=True) as one, one.client() as client:
        stream = await client.chat.completions.create(
            model="scripted", messages=[{"role": "user", "content": "2+2?"}], stream=True
        )
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])
        assert "The sum is 4." in text
        assert [call.arguments for call in one.ran] == [{"text": "4"}]


@pytest.mark.requirement("offer:fallback")
def test_only_errors_about_tools_are_refusals_of_them() -> None:
    for status, refusal in REFUSED.values():
        assert is_tool_refusal(refused_request("p", status, refusal.encode()).fault)
    for status, text in ((400, "context too long"), (429, "too many tools"), (401, "no tools for you")):
        assert not is_tool_refusal(
            refused_request("p", status, json.dumps({"error": {"message": text}}).encode()).fault
        )


@pytest.mark.requirement("offer:fallback", "memory:text-form")
async def test_a_model_that_refuses_tools_gets_the_rounds_of_earlier_turns_as_text(tmp_path: Path) -> None:
    status, refusal = REFUSED["ollama"]
    left = [call("Say", False, text="x"), says("I said x, as you wanted.", stream=False)]

    def answer(body: dict[str, Any]) -> Script:
        if left and "tools" in body:
            return left.pop(0)
        if "tools" in body:
            return Script([refusal.encode()], status=status, kind="application/json")
        return says("Yes.", stream=False)

    async with gateway(tmp_path, answer) as one:
        text = (await one.complete("Say x."))["choices"][0]["message"]["content"]
        history = [{"role": "user", "content": "Say x."}, {"role": "assistant", "content": text}]
        await one.complete(messages=[*history, {"role": "user", "content": "And?"}])
        refused, listed = one.upstream.bodies[-2:]
    assert [message["role"] for message in refused["messages"]] == ["user", "assistant", "tool", "assistant", "user"]
    assert "tool_calls" in refused["messages"][1]
    assert [message["role"] for message in listed["messages"]] == ["system", *("user", "assistant") * 2, "user"]
    assert request(text="x") in listed["messages"][2]["content"]
