"""The OpenAPI is true: requests made from it are answered as it says; and it is written down for people too."""

import asyncio
import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from fastapi.openapi.utils import get_openapi
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks
from schemathesis.core.result import Ok

from tests.web.conftest import RunningServer
from toolyard.config import load_config
from toolyard.message import read_catalogue
from toolyard.web.routes.admin.pages import FOLDER
from toolyard.web.server.lifecycle import Server, ServerOptions

EXAMPLES = 200 if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else 5
TRUE: list[Any] = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
FAILS_LIKE_VCPTOOLBOX = "/v1/human/tool"  # a failed tool is 500 there
HAVE_THEIR_OWN_KEYS = ("/login", "/plugin-callback/~{token}/{plugin}/{id}")
ENDLESS = ("/v1/backend/stream",)  # its answer has no end to look at
DOCS = Path(__file__).parents[2] / "docs" / "http.md"
PERSON = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def with_scripts(plain: bytes, scripts: list[str]) -> bytes:
    """The console's page as it is at an address whose page needs these scripts: the browser asks for all at once."""
    assert scripts
    [assets] = set(re.findall(rb'"/console/(assets/\w+/)', plain))
    links = "".join(
        f'<link rel="modulepreload" crossorigin href="/console/{name.replace("assets/", assets.decode())}">'
        for name in scripts
    )
    return plain.replace(b"</head>", links.encode() + b"</head>")


@pytest.fixture(scope="module")
def threaded_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a thread and an event loop of its own, for clients that have none."""
    place = tmp_path_factory.mktemp("beside")
    for name in ("project", "home"):
        (place / name).mkdir()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> Server:
        server = Server(load_config(place / "project", place / "home"), ServerOptions(port=0))
        await server.start()
        return server

    server = asyncio.run_coroutine_threadsafe(start(), loop).result(60)
    yield server
    asyncio.run_coroutine_threadsafe(server.stop(), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


@schemathesis.serializer("application/gzip")
def keep_value(_: object, value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


def operations(server: Server) -> Iterator[Any]:
    headers = {"Authorization": f"Bearer {server.key}"}
    document = requests.get(f"{server.url}/openapi.json", headers=headers, timeout=60).json()
    for result in schemathesis.openapi.from_dict(document).get_all_operations():
        assert isinstance(result, Ok), result
        yield result.ok()


def check_operation(server: Server, session: requests.Session, operation: Any) -> None:
    """Ask what the OpenAPI says can be asked, and look whether the answers are what it says."""
    own = [check for check in TRUE if operation.path != FAILS_LIKE_VCPTOOLBOX or check is not TRUE[0]]
    headers = {"Authorization": f"Bearer {server.key}", "Origin": server.url}

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    @given(case=operation.as_strategy())
    def answered(case: Any) -> None:
        server.access.limiter._attempts.clear()  # made-up credentials are not what is tested here
        response = case.call(base_url=server.url, session=session, headers=headers, allow_redirects=False, timeout=60)
        case.validate_response(response, checks=own)
        assert response.status_code != 401 or operation.path in HAVE_THEIR_OWN_KEYS

    answered()


@pytest.mark.requirement("http:documented")
def test_requests_made_from_the_openapi_are_answered_as_it_says(threaded_server: Server) -> None:
    false = {}
    with requests.Session() as session:
        every = [operation for operation in operations(threaded_server) if operation.path not in ENDLESS]
        for operation in every:
            try:
                check_operation(threaded_server, session, operation)
            except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 all that is false is told at once
                false[operation.label] = str(error)
    assert false == {}
    assert len(every) > 40


@pytest.mark.requirement("http:documented")
async def test_every_route_is_in_the_docs_page_and_in_the_written_docs(running_server: RunningServer) -> None:
    paths = (await running_server.get("/openapi.json")).json["paths"]
    page = (await running_server.get("/docs")).body.decode()
    written = DOCS.read_text("utf-8")
    assert [path for path in paths if f"<code>{path}</code>" not in page] == []
    missing = [
        f"{verb.upper()} {path}"
        for path, verbs in paths.items()
        for verb in verbs
        if not re.search(rf"`{verb.upper()} {re.escape(path)}[`?]", written)
    ]
    assert missing == []


@pytest.mark.requirement("http:documented")
async def test_the_docs_page_needs_no_other_server_and_no_script(running_server: RunningServer) -> None:
    page = (await running_server.get("/docs")).body.decode()
    assert "<script" not in page
    assert re.findall(r'(?:src|href)="([^"]+)"', page) == [
        "data:,", "/docs.css", "/openapi.json", "/docs/README",
    ]  # fmt: skip
    assert (await running_server.get("/docs.css")).status == 200


@pytest.mark.requirement("http:documented")
async def test_the_openapi_says_what_needs_a_key(running_server: RunningServer) -> None:
    result = (await running_server.get("/openapi.json")).json
    assert result["security"] == [{"key": []}]
    free = {path for path, verbs in result["paths"].items() for verb in verbs.values() if verb.get("security") == []}
    assert free == {
        *("/healthz", "/readyz", "/login", "/media/{name}", "/plugin-callback/~{token}/{plugin}/{id}"),
        *("/pw={key}/images/{path}", "/pw={key}/files/{path}"),
    }


@pytest.mark.requirement("console:root")
async def test_every_address_of_the_console_gives_its_page_and_its_files_come_packed(
    running_server: RunningServer,
) -> None:
    plain = (await running_server.get("/actvity", headers=PERSON)).body
    scripts_of = json.loads((FOLDER / "build.json").read_bytes())["pages"]
    for path, page in (("/", "chat"), ("/chat/abc", "chat"), ("/tools/Some%2FThing", "tools"), ("/status", "status")):
        response = await running_server.get(path)
        assert (path, response.status, response.body) == (path, 200, with_scripts(plain, scripts_of[page]))
    script = re.findall(rb'src="(/console/assets/[^"]+\.js)"', plain)[0].decode()
    packed = await running_server.get(script, headers={"Accept-Encoding": "gzip"})
    assert (packed.status, packed.headers["Content-Encoding"]) == (200, "gzip")
    assert "immutable" in packed.headers["Cache-Control"]
    again = await running_server.get(script, headers={"If-None-Match": packed.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")
    name = script.rpartition("/")[2]  # of another version there is none: a page never mixes two
    for other in (f"/console/assets/{name}", f"/console/assets/0123456789ab/{name}"):
        assert (await running_server.get(other)).status == 404
    for outside in ("/console/../app.py", "/console/%2e%2e/app.py", "/console/..%2fapp.py", "/console/nothing.js"):
        assert (await running_server.get(outside)).status == 404


@pytest.mark.requirement("console:languages:sentences")
async def test_the_console_gets_the_chinese_of_every_message_by_its_code_and_only_once(
    running_server: RunningServer,
) -> None:
    path = "/console/messages.zh.json"
    assert (await running_server.get(path, key=None)).status == 401
    whole = await running_server.get(path, headers={"Accept-Encoding": "gzip"})
    assert (whole.status, whole.headers["Content-Encoding"]) == (200, "gzip")
    assert whole.json == {row.get("code", text): row["zh"] for text, row in read_catalogue().items() if "zh" in row}
    again = await running_server.get(path, headers={"If-None-Match": whole.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")


@pytest.mark.requirement("console:root")
async def test_a_person_at_an_address_that_there_is_not_gets_the_console_and_a_program_gets_json(
    running_server: RunningServer,
) -> None:
    console = await running_server.get("/", headers=PERSON)
    lost = await running_server.get("/actvity", headers=PERSON)
    assert (lost.status, lost.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    first_page = json.loads((FOLDER / "build.json").read_bytes())["pages"]["chat"]
    assert with_scripts(lost.body, first_page) == console.body
    assert (await running_server.get("/chats/abc", headers=PERSON)).body == lost.body
    assert lost.headers["Content-Security-Policy"] == console.headers["Content-Security-Policy"]
    for path, sent in (("/actvity", {}), ("/v1/nothing", PERSON), ("/console/nothing.js", PERSON)):
        response = await running_server.get(path, headers=sent)
        assert (response.status, response.json["error"]["code"]) == (404, "not_found")
    assert (await running_server.get("/actvity", headers=PERSON, key=None)).status == 401


@pytest.mark.requirement("s:S-63")
async def test_what_draws_diagrams_has_no_origin_and_a_policy_of_its_own(running_server: RunningServer) -> None:
    frame = await running_server.get("/console/draw/frame.html", key=None)  # a frame without an origin has no cookie
    assert frame.status == 200
    policy = frame.headers["Content-Security-Policy"]
    assert "sandbox allow-scripts;" in policy
    assert "allow-same-origin" not in policy
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy
    assert (await running_server.get("/console/index.html", key=None)).status == 401


@pytest.mark.requirement("http:documented")
async def test_the_openapi_is_made_once_and_beside_the_event_loop(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[threading.Thread] = []

    def noted(**more: Any) -> dict[str, Any]:
        made.append(threading.current_thread())
        return get_openapi(**more)

    monkeypatch.setattr("fastapi.applications.get_openapi", noted)
    paths = ("/openapi.json", "/docs", "/openapi.json")
    answers = await asyncio.gather(*(running_server.get(path) for path in paths))
    assert [answer.status for answer in answers] == [200] * 3
    assert [answer.json["security"] for answer in answers[::2]] == [[{"key": []}]] * 2
    assert len(made) == 1
    assert made[0] is not threading.main_thread()
