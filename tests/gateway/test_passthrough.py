"""Embeddings, images, audio, moderations and legacy completions: on to the provider of the model, byte for byte."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

from tests.gateway.serving import Gateway, gateway
from tests.gateway.upstream import Call, Script, provider, replies
from toolyard.gateway.providers import forwarded_answer
from toolyard.gateway.providers.passthrough import MAX_NAME, FormModel, boundary_of
from toolyard.provider_settings import Provider, ProviderOptions

pytestmark = pytest.mark.requirement("clients:passthrough")
SOUND = bytes(range(256)) * 2000


def as_json(value: Any, **more: Any) -> Script:
    return Script([json.dumps(value).encode()], kind="application/json", **more)


def answer_all(call: Call) -> Script:
    """As OpenAI does, in short."""
    match call.path.removeprefix("/v1"):
        case "/embeddings":
            data = [{"object": "embedding", "index": 0, "embedding": [0.5, -1.25]}]
            return as_json(
                {"object": "list", "data": data, "model": "e", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
            )
        case "/images/generations" | "/images/edits":
            return as_json({"created": 1, "data": [{"b64_json": "aGk="}]})
        case "/audio/transcriptions":
            return as_json({"text": f"{len(call.fields['file'])} bytes"})
        case "/audio/speech":
            return Script([SOUND[:1000], SOUND[1000:]], kind="audio/mpeg")
        case "/moderations":
            return as_json(
                {"id": "m", "model": "mod", "results": [{"flagged": True, "categories": {}, "category_scores": {}}]}
            )
        case "/completions" if call.fields.get("stream"):
            shell = {"id": "c", "object": "text_completion", "created": 1, "model": "t"}
            pieces = [shell | {"choices": [{"index": 0, "text": text, "finish_reason": None}]} for text in "abc"]
            return Script([*(f"data: {json.dumps(one)}\n\n".encode() for one in pieces), b"data: [DONE]\n\n"])
        case "/completions":
            choice = {"index": 0, "text": "abc", "finish_reason": "stop", "logprobs": None}
            return as_json({"id": "c", "object": "text_completion", "created": 1, "model": "t", "choices": [choice]})
    return Script([b"{}"], status=404, kind="application/json")


def session_of(one: Gateway) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(one.url, headers={"Authorization": "Bearer me"})


@pytest.fixture
async def one(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with asyncio.timeout(120), gateway(tmp_path, replies("Hi."), served=True) as made:
        made.upstream.answer = answer_all
        yield made


async def test_the_official_client_gets_what_it_gets_from_the_provider(one: Gateway) -> None:
    direct = openai.AsyncOpenAI(base_url=one.upstream.url, api_key="sk-the-key", max_retries=0)
    async with one.client() as through, direct:
        for client in (direct, through):
            embedded = await client.embeddings.create(model="e", input="hello", encoding_format="float")
            assert embedded.data[0].embedding == [0.5, -1.25]
            made = await client.images.generate(model="i", prompt="a cat")
            assert made.data is not None
            assert made.data[0].b64_json == "aGk="
            edited = await client.images.edit(model="i", prompt="a dog", image=("cat.png", b"\x89PNG\r\n\r\n--x"))
            assert edited.data is not None
            heard = await client.audio.transcriptions.create(model="w", file=("a.mp3", SOUND))
            assert heard.text == f"{len(SOUND)} bytes"
            spoken = await client.audio.speech.create(model="s", voice="alloy", input="hello")
            assert await spoken.aread() == SOUND
            assert spoken.response.headers["content-type"] == "audio/mpeg"
            judged = await client.moderations.create(model="mod", input="hello")
            assert judged.results[0].flagged
            completed = await client.completions.create(model="t", prompt="x")
            assert completed.choices[0].text == "abc"
            stream = await client.completions.create(model="t", prompt="x", stream=True)
            assert "".join([piece.choices[0].text async for piece in stream]) == "abc"
    half = len(one.upstream.calls) // 2
    assert half == 8
    for sent, passed in zip(one.upstream.calls[:half], one.upstream.calls[half:], strict=True):
        assert (passed.path, passed.fields) == (sent.path, sent.fields)
        assert passed.head["Authorization"] == "Bearer sk-the-key"
        if passed.head["Content-Type"] == "application/json":
            assert passed.body == sent.body
        else:
            assert passed.head["Content-Length"] == str(len(passed.body))
            assert "Transfer-Encoding" not in passed.head


async def test_the_model_decides_which_provider_is_asked_under_its_own_name(tmp_path: Path) -> None:
    async with provider(replies("Hi.")) as second:
        second.answer = answer_all
        options = ProviderOptions(headers={"X-Own": "yes"}, query={"api-version": "1"})
        named = {"second": Provider(second.url, "sk-second", ("special",), options)}
        async with (
            gateway(tmp_path, replies("Hi."), settings={"upstreams": named}, served=True) as one,
            one.client() as client,
        ):
            one.upstream.answer = answer_all
            for model in ("special", "second/other", "any", "second/🐈"):
                await client.embeddings.create(model=model, input="x", encoding_format="float")
                await client.audio.transcriptions.create(model=model, file=("a.mp3", b"123"))
            assert [call.fields["model"] for call in second.calls] == ["special"] * 2 + ["other"] * 2 + ["🐈"] * 2
            assert {(call.head["X-Own"], call.head["Authorization"]) for call in second.calls} == {
                ("yes", "Bearer sk-second")
            }
            assert [call.fields["model"] for call in one.upstream.calls] == ["any", "any"]
            assert all(len(call.fields.get("file", b"123")) == 3 for call in second.calls)


async def test_without_a_model_the_default_provider_is_asked(one: Gateway) -> None:
    async with session_of(one) as session:
        form = aiohttp.FormData()
        form.add_field("file", b"123", filename="a.mp3")
        for body in ({"json": {"input": "x"}}, {"data": form}):
            path = "/v1/moderations" if "json" in body else "/v1/audio/transcriptions"
            async with session.post(path, **body) as response:
                assert response.status == 200
    assert [call.path for call in one.upstream.calls] == ["/v1/moderations", "/v1/audio/transcriptions"]


async def test_a_form_goes_on_while_it_comes_as_soon_as_its_model_is_known(one: Gateway) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def upload() -> AsyncIterator[bytes]:
        yield b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nw\r\n'
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nfirst'
        await go.wait()
        yield b" last\r\n--b--\r\n"

    def answer(_: Call) -> Script:
        return as_json({"text": "ok"})

    one.upstream.answer = answer
    one.upstream.when_begun = begun.set
    headers = {"Authorization": "Bearer me", "Content-Type": "multipart/form-data; boundary=b"}
    async with aiohttp.ClientSession(one.url, headers=headers) as session:
        asking = asyncio.create_task(session.post("/v1/audio/transcriptions", data=upload()))
        await begun.wait()  # the provider has the head although the client is not done
        go.set()
        async with await asking as response:
            assert await response.json() == {"text": "ok"}
    assert one.upstream.calls[0].fields == {"model": "w", "file": b"first last"}


async def test_a_model_behind_its_file_is_found_too(one: Gateway) -> None:
    form = aiohttp.FormData()
    form.add_field("file", SOUND, filename="a.mp3")
    form.add_field("model", "tour")
    async with session_of(one) as session, session.post("/v1/audio/transcriptions", data=form) as response:
        body = await response.json()
    assert (response.status, body["error"]["code"]) == (400, "no_provider")
    assert one.upstream.calls == []


async def test_errors_are_openai_shaped_and_without_secrets(one: Gateway) -> None:
    def refuse(_: Call) -> Script:
        return as_json({"error": {"message": "wrong key sk-the-key", "code": "bad"}}, status=400)

    one.upstream.answer = refuse
    async with one.client() as client:
        with pytest.raises(openai.BadRequestError, match=r"wrong key \[masked\]") as raised:
            await client.embeddings.create(model="e", input="x")
        assert raised.value.code == "bad"
        one.upstream.answer = lambda _: as_json({"error": {"message": "who are you"}}, status=401)
        with pytest.raises(openai.InternalServerError, match="who are you") as failed:  # our key, not the client's
            await client.embeddings.create(model="e", input="x")
        assert failed.value.status_code == 502
        one.upstream.answer = lambda _: as_json({}, status=429, headers={"Retry-After": "77"})
        with pytest.raises(openai.RateLimitError) as limited:
            await client.embeddings.create(model="e", input="x")
        assert limited.value.response.headers["retry-after"] == "77"
        for body, message in (
            (b"{", "not valid JSON"),
            (b"[]", "must be a JSON object"),
            (b'{"model": 1}', "must be a text"),
        ):
            async with session_of(one) as session, session.post("/v1/embeddings", data=body) as response:
                assert (response.status, message in (await response.json())["error"]["message"]) == (400, True)


async def test_secrets_in_a_json_request_do_not_leave(one: Gateway) -> None:
    async with one.client() as client:
        await client.embeddings.create(model="e", input="my key is sk-the-key", encoding_format="float")
    assert one.upstream.calls[0].fields["input"] == "my key is [masked]"


async def test_another_key_is_taken_where_one_is_refused(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"upstream_options": ProviderOptions(keys=("sk-second-key",))}

    def answer(call: Call) -> Script:
        return as_json({}, status=401) if call.head["Authorization"] == "Bearer sk-the-key" else answer_all(call)

    async with gateway(tmp_path, [], settings=settings, served=True) as one, one.client() as client:
        one.upstream.answer = answer
        assert (await client.embeddings.create(model="e", input="x", encoding_format="float")).data


async def test_without_a_provider_it_is_said_how_to_set_one(tmp_path: Path) -> None:
    async with (
        gateway(tmp_path, [], settings={"upstream_url": None, "upstream_key": None}, served=True) as one,
        one.client() as client,
    ):
        for ask in (
            client.embeddings.create(model="e", input="x"),
            client.audio.transcriptions.create(model="w", file=("a.mp3", b"x")),
        ):
            with pytest.raises(openai.BadRequestError, match=r"no model provider is set.*OPENAI_BASE_URL") as raised:
                await ask
            assert raised.value.code == "no_provider"


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_an_answer_that_breaks_off_looks_broken(one: Gateway, kind: str) -> None:
    one.upstream.answer = lambda _: Script([b'data: {"a": 1}\n\n'], kind=kind, then="cut")
    async with session_of(one) as session, session.post("/v1/completions", json={"model": "t"}) as response:
        if kind == "application/json":
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.read()
        else:
            events = (await response.read()).split(b"\n\n")
            assert events[0] == b'data: {"a": 1}'
            assert json.loads(events[1].removeprefix(b"data: "))["error"]["code"] == "upstream_cut_off"
    assert "broke off" in one.chat.contacts()[""].error


async def test_a_client_that_leaves_ends_the_answer_of_the_provider(one: Gateway) -> None:
    one.upstream.answer = lambda _: Script([SOUND], kind="audio/mpeg", then="hang")
    async with session_of(one) as session:
        response = await session.post("/v1/audio/speech", json={"model": "s"})
        await response.content.readexactly(1000)
        response.close()
    async with asyncio.timeout(60):
        await one.upstream.gone.wait()
        await one.chat.upstreams.idle()


async def test_answers_are_bounded_also_when_they_are_compressed(one: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarded_answer, "MAX_ANSWER", 100_000)
    packed = {"Content-Encoding": "gzip"}
    async with session_of(one) as session:
        for size, headers, fits in ((90_000, packed, True), (5_000_000, packed, False), (5_000_000, {}, False)):
            body = b"x" * size
            pieces = [gzip.compress(body) if headers else body]
            one.upstream.answer = lambda _, p=pieces, h=headers: Script(p, kind="audio/mpeg", headers=h)
            async with session.post("/v1/audio/speech", json={"model": "s"}) as response:
                assert "Content-Encoding" not in response.headers
                if fits:
                    assert await response.read() == body
                else:
                    with pytest.raises(aiohttp.ClientPayloadError):
                        await response.read()


async def test_no_page_of_a_provider_becomes_a_page_of_ours(one: Gateway) -> None:
    async with session_of(one) as session:
        for kind in ("text/html", "image/svg+xml", "", "application/xhtml+xml"):
            one.upstream.answer = lambda _, k=kind: Script([b"<script>"], kind=k)
            async with session.post("/v1/audio/speech", json={"model": "s"}) as response:
                assert response.content_type == "application/octet-stream"


async def test_operations_are_names_and_nothing_else(one: Gateway) -> None:
    async with session_of(one) as session:
        for path in ("/v1/audio/..%2Fmodels", "/v1/images/a%3Fb", "/v1/images/A", "/v1/audio/" + "a" * 100):
            async with session.post(path, json={"model": "s"}) as response:
                assert response.status == 404
    assert one.upstream.calls == []


@pytest.mark.requirement("clients:models")
async def test_a_model_is_found_by_its_id_with_or_without_its_provider(tmp_path: Path) -> None:
    named = {"far": Provider("http://127.0.0.1:1", None, ("org/big", "small"))}
    async with gateway(tmp_path, [], settings={"upstreams": named}, served=True) as one, one.client() as client:
        for id_ in ("scripted", "org/big", "small", "tour", "far/org/big", "far/small"):
            assert (await client.models.retrieve(id_)).id == id_
        for id_ in ("nobody", "far/nobody", "org", "/scripted", "tour/tour"):
            with pytest.raises(openai.NotFoundError):
                await client.models.retrieve(id_)


def form(*parts: tuple[str, bytes], boundary: str = "b") -> bytes:
    made = [f"--{boundary}\r\n{head}\r\n\r\n".encode() + body + b"\r\n" for head, body in parts]
    return b"".join(made) + f"--{boundary}--\r\n".encode()


FIELD = 'Content-Disposition: form-data; name="{}"'


@pytest.mark.parametrize(
    ("raw", "model"),
    [
        (form((FIELD.format("model"), b"m")), "m"),
        (
            form((FIELD.format("file") + '; filename="model"', b"\r\n--bx\r\n--"), (FIELD.format("model"), b"a/b")),
            "a/b",
        ),
        (form(("content-disposition:form-data;name=model", b"m")), "m"),
        (form((FIELD.format("model") + '; filename="x"', b"no"), (FIELD.format("models"), b"no")), ""),
        (form((FIELD.format("model"), b""), (FIELD.format("x"), b"y")), ""),
        (form((FIELD.format("model"), b"m" * (MAX_NAME + 1))), ""),
        (form(("X: " + "y" * 20_000, b""), (FIELD.format("model"), b"m")), ""),
        (form(), ""),
        (b"no form at all", ""),
    ],
)
def test_the_model_of_a_form_is_found_however_its_bytes_are_cut(raw: bytes, model: str) -> None:
    for size in (1, 3, len(raw)):
        form_model = FormModel("b")
        for at in range(0, len(raw), size):
            if not form_model.is_done:
                form_model.feed(raw[at : at + size])
        assert form_model.model == model
        if model:
            assert form_model.span is not None
            assert form_model.data[slice(*form_model.span)] == model.encode()


def test_the_boundary_of_a_form_stands_in_its_content_type() -> None:
    assert boundary_of('multipart/form-data; boundary="a b"; x=y') == "a b"
    assert boundary_of("multipart/form-data; Boundary=----WebKit7") == "----WebKit7"
    assert boundary_of("multipart/form-data") == ""


@pytest.mark.requirement("offer:aliases")
async def test_the_alias_of_a_model_is_taken_off_here_too(one: Gateway) -> None:
    async with one.client() as client:
        await client.embeddings.create(model="e+plain", input="hello", encoding_format="float")
        await client.audio.transcriptions.create(model="w+tools", file=("a.mp3", b"sound"))
        assert (await client.models.retrieve("scripted+tools")).id == "scripted+tools"
    assert [call.fields["model"] for call in one.upstream.calls] == ["e", "w"]
