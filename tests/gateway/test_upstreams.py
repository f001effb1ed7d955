"""Which provider answers, at which address, with which key."""

import json
from pathlib import Path

import pytest
from aiohttp import web

from tests.gateway.serving import ME, chat_body, gateway
from tests.gateway.upstream import Script, provider, replies, says, streamed
from toolyard.config import load_config
from toolyard.errors import ConfigError
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.faults import ChatFailed
from toolyard.gateway.providers import upstreams
from toolyard.gateway.providers.endpoint import Endpoint, base_address
from toolyard.gateway.providers.upstream import HttpUpstream
from toolyard.gateway.providers.upstreams import Provider, Upstreams
from toolyard.gateway.tour_model import Tour
from toolyard.provider_settings import Provider as Setting
from toolyard.provider_settings import ProviderOptions

pytestmark = pytest.mark.requirement("chat:upstream")


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("https://api.openai.com", "https://api.openai.com/v1"),
        ("https://api.openai.com/", "https://api.openai.com/v1"),
        ("https://api.openai.com/v1", "https://api.openai.com/v1"),
        ("https://api.openai.com/v1/", "https://api.openai.com/v1"),
        ("https://x.org/v1/chat/completions", "https://x.org/v1"),
        ("https://x.org/api/paas/v4", "https://x.org/api/paas/v4"),
        ("https://x.org/v1beta/openai/", "https://x.org/v1beta/openai"),
        ("http://127.0.0.1:11434/proxy", "http://127.0.0.1:11434/proxy/v1"),
        ("https://x.org/api/chat/completions", "https://x.org/api"),
        ("https://x.openai.azure.com/openai/deployments/gpt", "https://x.openai.azure.com/openai/deployments/gpt"),
    ],
)
def test_an_address_may_have_its_version_or_not(url: str, base: str) -> None:
    assert base_address(url) == base


@pytest.mark.parametrize("names", [("OPENAI_BASE_URL", "OPENAI_API_KEY"), ("API_URL", "API_Key")])
def test_the_provider_comes_from_either_pair_of_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, str]
) -> None:
    monkeypatch.setenv(names[0], "http://127.0.0.1:1/v1")
    monkeypatch.setenv(names[1], "sk-something")
    config = load_config(tmp_path, tmp_path)
    assert (config.settings.upstream_url, config.settings.upstream_key) == ("http://127.0.0.1:1/v1", "sk-something")


def test_named_providers_come_from_the_file_and_mistakes_are_told(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[upstreams.local]\nurl = "http://127.0.0.1:11434"\nmodels = ["qwen3:8b"]\nkey = "sk-local"\n')
    config = load_config(tmp_path, tmp_path)
    assert config.settings.upstreams == {"local": Setting("http://127.0.0.1:11434", "sk-local", ("qwen3:8b",))}
    assert "sk-local" not in repr(config.settings.upstreams)
    for wrong in (
        'upstream_url = "ftp://x"',
        "upstreams = 1",
        '[upstreams.x]\nkey = "y"',
        '[upstreams.x]\nurl="http://x"\nkeys="y"',
        '[upstreams.x]\nurl="http://x"\nformer_names=["a/b"]',
    ):
        file.write_text(wrong)
        with pytest.raises(ConfigError, match="upstream"):
            load_config(tmp_path, tmp_path)


def test_a_model_finds_its_provider() -> None:
    tour = Tour(lambda: pytest.fail("nobody asks for the time"))
    a, b, default = (HttpUpstream(name, "http://127.0.0.1:1", None) for name in ("a", "b", "default"))
    both = Upstreams(tour, {"a": Provider(a, ("m1",)), "b": Provider(b)}, default)
    assert [both.pick(model) for model in ("m1", "a/x/y", "b/m1", "other", "tour")] == [
        (a, "m1"), (a, "x/y"), (b, "m1"), (default, "other"), (tour, "tour"),
    ]  # fmt: skip
    assert Upstreams(tour, {"a": Provider(a, ("m1",)), "b": Provider(b)}).pick("other") == (b, "other")
    assert Upstreams(tour, {}).pick("gpt") == (tour, "tour")
    with pytest.raises(ChatFailed, match="no model provider has 'other': use one of m1, tour"):
        Upstreams(tour, {"a": Provider(a, ("m1",))}).pick("other")


@pytest.mark.requirement("console:providers:rename")
def test_the_models_of_a_renamed_provider_answer_under_its_former_names_unless_others_have_them() -> None:
    tour = Tour(lambda: pytest.fail("nobody asks for the time"))
    a, b, default = (HttpUpstream(name, "http://127.0.0.1:1", None) for name in ("a", "b", "default"))
    renamed = Provider(a, (), ("old", "b", "maker"))
    both = Upstreams(tour, {"a": renamed, "b": Provider(b, ("maker/m1",))}, default)
    assert [both.pick(model) for model in ("a/x", "old/x", "b/x", "maker/m1", "maker/m2", "other/x")] == [
        (a, "x"), (a, "x"), (b, "x"), (b, "maker/m1"), (a, "m2"), (default, "other/x"),
    ]  # fmt: skip


async def test_several_providers_have_their_own_keys_and_models(tmp_path: Path) -> None:
    async with provider(replies("From the second.")) as second:
        named = {"second": Setting(second.url, "sk-second", ("special",))}
        async with gateway(tmp_path, replies("From the first."), settings={"upstreams": named}) as one:
            for model, text, asked_for in (
                ("special", "second", "special"),
                ("second/x", "second", "x"),
                ("y", "first", "y"),
            ):
                run = await one.chat.complete(ClientRequest({**chat_body("Hi"), "model": model}, caller=ME))
                assert text in json.loads(run.body)["choices"][0]["message"]["content"]
                bodies = second.bodies if text == "second" else one.upstream.bodies
                assert bodies[-1]["model"] == asked_for
            assert (set(second.keys), set(one.upstream.keys)) == ({"Bearer sk-second"}, {"Bearer sk-the-key"})
            assert [model["id"] for model in await one.chat.models()] == ["scripted", "special", "tour"]


_ERROR = b'data: {"error": {"message": "out of memory"}}\n\n'


@pytest.mark.parametrize(
    ("script", "stream", "error"),
    [
        (Script(streamed("Hello.")[:2], then="cut"), True, "broke off in the middle"),
        (Script(streamed("Hello.")[:2]), True, "broke off in the middle"),
        (Script([streamed("Hello.")[0], _ERROR]), True, "out of memory"),
        (Script([b'{"choices": ['], kind="application/json", then="cut"), False, "broke off in the middle"),
        (Script([b"{}"], kind="application/json"), False, "no chat completion"),
    ],
    ids=["cut", "ended", "error", "whole-cut", "whole-empty"],
)
async def test_an_answer_that_fails_after_it_began_is_the_last_error_of_its_provider(
    tmp_path: Path, script: Script, stream: bool, error: str
) -> None:
    async with gateway(tmp_path, [says("Fine.", stream=stream), script]) as one:
        ask = one.stream if stream else one.complete
        await ask()
        assert (one.chat.contacts()[""].failed, one.chat.contacts()[""].error) == (None, "")
        await ask()
        contact = one.chat.contacts()[""]
        assert error in contact.error
        assert contact.failed is not None
        assert contact.answered is not None
        assert contact.failed >= contact.answered


async def test_connections_are_used_again(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("Hi.")) as one:
        for number in range(10):
            await (one.stream() if number % 2 else one.complete())
        assert (len(one.upstream.bodies), len(one.upstream.connections)) == (10, 1)


@pytest.mark.requirement("chat:upstream", "s:S-91")
async def test_the_key_does_not_follow_a_redirect(tmp_path: Path) -> None:
    async with provider([says("Thief.")]) as thief:
        away = Script(status=307, headers={"Location": f"{thief.url}/chat/completions"})
        async with gateway(tmp_path, [away]) as one:
            run = await one.chat.complete(ClientRequest(chat_body("Hi", stream=True), caller=ME))
            assert run.status == 502
        assert (thief.bodies, thief.keys) == ([], [])


@pytest.mark.parametrize(
    ("status", "body", "listed", "error"),
    [
        (200, '{"data": [{"id": "one"}, {"id": null}, {"id": 2}, {}, "x"]}', ["one"], ""),
        (401, '{"error": {"message": "wrong key"}}', [], "answered 401"),
        (200, "<html>", [], "no list of models"),
        (404, "{}", [], ""),
    ],
    ids=["odd", "refused", "page", "none"],
)
async def test_a_provider_that_lists_no_models_is_told_and_the_others_are_listed(
    tmp_path: Path, status: int, body: str, listed: list[str], error: str
) -> None:
    async def models(_: web.Request) -> web.Response:
        return web.Response(status=status, text=body)

    app = web.Application()
    app.router.add_get("/v1/models", models)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        named = {"odd": Setting(f"http://127.0.0.1:{runner.addresses[0][1]}", None, ())}
        async with gateway(tmp_path, replies("Hi."), settings={"upstreams": named}) as one:
            assert [model["id"] for model in await one.chat.models()] == ["scripted", *listed, "tour"]
            assert error in one.chat.contacts()["odd"].error
            assert bool(one.chat.contacts()["odd"].failed) == bool(error)
    finally:
        await runner.cleanup()


@pytest.mark.requirement("console:providers:models")
async def test_a_model_goes_to_the_provider_that_lists_it_and_the_default_answers_where_none_is_named(
    tmp_path: Path,
) -> None:
    def list_models(*names: str) -> Script:
        body = {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}
        return Script([json.dumps(body).encode()], kind="application/json")

    async with provider(replies("two")) as two, provider(replies("off")) as off:
        named = {
            "two": Setting(two.url),
            "off": Setting(off.url, None, ("only-off",), ProviderOptions(disabled=True)),
        }
        settings = {"upstreams": named, "default_model": "two/shared"}
        async with gateway(tmp_path, replies("one"), settings=settings) as served:
            served.upstream.models, two.models = list_models("a", "shared"), list_models("b", "shared")
            for model, text in (("b", "two"), ("a", "one"), ("shared", "one"), ("two/shared", "two"), ("", "two")):
                run = await served.chat.complete(ClientRequest({**chat_body("Hi"), "model": model}, caller=ME))
                assert (model, json.loads(run.body)["choices"][0]["message"]["content"]) == (model, text)
            assert two.bodies[-1]["model"] == "shared"
            assert [model["id"] for model in await served.chat.models()] == ["two/shared", "a", "shared", "b", "tour"]
            assert off.addresses == []


async def test_the_default_model_is_listed_although_its_provider_is_down(tmp_path: Path) -> None:
    for url, default_model, models in (
        ("http://127.0.0.1:9/v1", "big", ["big", "tour"]),
        ("http://127.0.0.1:9/v1", None, ["tour"]),
        (None, "big", ["tour"]),
    ):
        settings = {"upstream_url": url, "upstream_key": None, "default_model": default_model}
        async with gateway(tmp_path, replies("x"), settings=settings) as one:
            assert [model["id"] for model in await one.chat.models()] == models


@pytest.mark.requirement("console:providers:away")
async def test_a_provider_that_stops_answering_keeps_its_models_which_are_said_to_be_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstreams, "_FRESH_S", -1.0)
    monkeypatch.setattr(upstreams, "_RETRY_S", -1.0)
    settings = {"default_model": "the-default"}
    async with gateway(tmp_path, replies("Hi."), settings=settings, served=True) as one:

        async def states() -> dict[str, bool]:
            return {str(model["id"]): model.get("available") is not False for model in await one.chat.models()}

        one.upstream.models = Script(then="drop")
        assert await states() == {"the-default": False, "tour": True}  # nobody has listed it yet
        assert one.chat.unavailable_providers() == ["upstream"]
        one.upstream.models = None
        assert await states() == {"scripted": True, "tour": True}
        assert one.chat.unavailable_providers() == []
        one.upstream.models = Script(status=500)
        assert await states() == {"the-default": False, "scripted": False, "tour": True}


@pytest.mark.requirement("console:providers")
def test_the_list_of_models_is_asked_for_as_its_provider_wants_it() -> None:
    anthropic = Endpoint("https://api.anthropic.com/v1", ProviderOptions())
    own = {"Accept-Encoding": "identity"}
    assert anthropic.list_headers("sk-1") == {"anthropic-version": "2023-06-01", "x-api-key": "sk-1", **own}
    assert anthropic.headers("sk-1") == {"Authorization": "Bearer sk-1", **own}
    usual = Endpoint("https://api.anthropic.com.evil.org/v1", ProviderOptions())
    assert usual.list_headers("sk-1") == usual.headers("sk-1") == {"Authorization": "Bearer sk-1", **own}
