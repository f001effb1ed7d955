"""Status, setup, doctor and backup over HTTP."""

import io
import re
import tarfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from tests.web.conftest import HttpResponse, RunningServer, run_server
from toolyard.web.security.scope import Scope

KEY = "sk-canary-31c8aa"
GIVEN = "sk-canary-given-7"


@dataclass
class Provider:
    """A model provider that refuses whoever has not the key, and repeats what it was sent."""

    url: str = ""
    seen: list[str] = field(default_factory=list)


@asynccontextmanager
async def provider(key: str = "") -> AsyncIterator[Provider]:
    one = Provider()

    async def models(request: web.Request) -> web.Response:
        output = request.headers.get("Authorization", "")
        one.seen.append(output)
        if output != (f"Bearer {key}" if key else ""):
            return web.json_response({"error": {"message": f"no such key: {output}"}}, status=401)
        return web.json_response({"data": [{"id": "small"}, {"id": "large"}]})

    async def away(_: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "http://127.0.0.1:1/v1/models"})

    app = web.Application()
    app.router.add_get("/v1/models", models)
    app.router.add_get("/away/v1/models", away)
    app.router.add_get("/page/v1/models", _page)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    one.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield one
    finally:
        await runner.cleanup()


async def _page(_: web.Request) -> web.Response:
    return web.Response(text="<html>hello</html>", content_type="text/html")


@pytest.mark.requirement("http:status")
async def test_a_provider_is_tested_with_its_models_or_its_exact_words(running_server: RunningServer) -> None:
    async with provider(GIVEN) as one:
        good = await running_server.post("/v1/upstream/test", {"url": one.url, "key": GIVEN})
        wrong = await running_server.post("/v1/upstream/test", {"url": one.url, "key": "sk-canary-wrong"})
        away = await running_server.post("/v1/upstream/test", {"url": f"{one.url}/away", "key": GIVEN})
        page = await running_server.post("/v1/upstream/test", {"url": f"{one.url}/page/v1"})
    nobody = await running_server.post("/v1/upstream/test", {"url": "http://127.0.0.1:1"})
    no_url = await running_server.post("/v1/upstream/test", {"url": "file:///etc/passwd"})
    nothing = await running_server.post("/v1/upstream/test", {})
    assert (good.json["ok"], good.json["models"], good.json["key"]) == (True, ["small", "large"], "given")
    assert (wrong.json["ok"], wrong.json["error"]) == (False, "it answered 401: no such key: Bearer [masked]")
    assert (away.json["ok"], away.json["error"]) == (False, "it answered 302")
    assert "no JSON" in page.json["error"]
    assert "cannot be reached" in nobody.json["error"]
    assert (no_url.status, nothing.status) == (400, 400)
    assert GIVEN.encode() not in good.body + wrong.body + away.body


@pytest.mark.requirement("s:S-72")
async def test_a_test_sends_the_stored_key_to_its_own_origin_only(tmp_path: Path) -> None:
    async with provider(KEY) as own, provider() as other:
        settings = f'upstream_url = "{own.url}"\nupstream_key = "{KEY}"\n'
        async with run_server(tmp_path, settings=settings) as running:
            stored = await running.post("/v1/upstream/test", {})
            same = await running.post("/v1/upstream/test", {"url": f"{own.url}/v1"})
            else_ = await running.post("/v1/upstream/test", {"url": other.url})
            keys = [running.make_key(scope) for scope in (Scope.CHAT, Scope.TOOLS, Scope.APPROVE)]
            refused = [await running.post("/v1/upstream/test", {"url": other.url}, key=key) for key in keys]
        assert [stored.json["key"], same.json["key"], else_.json["key"]] == ["stored", "stored", "none"]
        assert [stored.json["ok"], same.json["ok"], else_.json["ok"]] == [True, True, True]
        assert (own.seen, other.seen) == ([f"Bearer {KEY}"] * 2, [""])
        assert [one.status for one in refused] == [403] * 3
        assert KEY.encode() not in stored.body + same.body + else_.body


@pytest.mark.requirement("console:providers", "s:S-72")
async def test_a_provider_is_tested_as_it_would_be_stored_and_nothing_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with provider(KEY) as own, provider(GIVEN) as other:
        settings = f'[upstreams.own]\nurl = "{own.url}"\nkey = "{KEY}"\n'
        masked = {"url": own.url, "key": "[masked]"}
        async with run_server(tmp_path, settings=settings) as running:

            async def test(name: str, **upstreams: object) -> HttpResponse:
                values = {"values": {"upstreams": upstreams}} if upstreams else {}
                return await running.post("/v1/upstream/test", {"name": name, **values})

            stored = await test("own")
            kept = await test("own", own={**masked, "idle_seconds": 90})
            moved = await test("own", own={**masked, "url": other.url})
            new = await test("new", own=masked, new={"url": other.url, "key": GIVEN})
            wrong = await test("new", own=masked, new={"url": own.url, "key": "sk-canary-wrong"})
            bare = await test("new", own=masked, new={"url": own.url})
            invalid = await test("new", own=masked, new={"url": own.url, "idle_seconds": 0})
            unknown = await test("nobody")
            monkeypatch.setattr("toolyard.gateway.providers.probe._KEY_CHECKS", {"127.0.0.1": "/key"})
            checked = await test("own")
            written = (running.home / "config.toml").read_text()
        assert written == settings
    assert [one.json["key"] for one in (stored, kept, new, wrong, bare)] == [
        "stored", "stored", "given", "given", "none",
    ]  # fmt: skip
    assert [one.json["ok"] for one in (stored, kept, new, wrong, bare)] == [True, True, True, False, False]
    assert (moved.status, "the stored key belongs to" in moved.json["problems"][0]["message"]) == (422, True)
    assert (wrong.json["status"], wrong.json["hint_code"]) == (401, "provider.hint_key")
    assert bare.json["hint"] == "This provider needs a key: enter it."
    assert (invalid.status, unknown.status) == (422, 404)
    assert (checked.json["ok"], checked.json["status"]) == (False, 404)  # a public list proves no key
    assert other.seen == [f"Bearer {GIVEN}"]
    everything = b"".join(one.body for one in (stored, kept, moved, new, wrong, bare, invalid, checked))
    assert not any(key in everything for key in (KEY.encode(), GIVEN.encode(), b"sk-canary-wrong"))


@pytest.mark.requirement("console:settings:words")
async def test_the_documentation_is_served_with_anchors_links_and_translations(running_server: RunningServer) -> None:
    key = running_server.make_key(Scope.CHAT)
    page = (await running_server.get("/docs/configuration", key=key)).body.decode()
    assert '<h2 id="project-and-home">' in page
    assert '<tr id="port">' in page
    assert 'href="/docs/providers#fallbacks"' in page
    chinese = (await running_server.get("/docs/tutorial?lang=zh", key=key)).body.decode()
    assert '<html lang="zh-CN">' in chinese
    assert '<html lang="en">' in (await running_server.get("/docs/architecture?lang=zh", key=key)).body.decode()
    services = (await running_server.get("/docs/services?lang=zh", key=key)).body.decode()
    assert '<h2 id="重启与升级"><span id="restarts-and-upgrades"></span>重启与升级</h2>' in services
    index = (await running_server.get("/docs/README", key=key)).body.decode()
    topics = set(re.findall(r'href="/docs/([\w./-]+)', index))
    assert len(topics) > 20
    assert [one for one in topics if (await running_server.get(f"/docs/{one}", key=key)).status != 200] == []
    assert [(await running_server.get(f"/docs/{one}", key=key)).status for one in ("nothing", "")] == [404, 200]


@pytest.mark.requirement("http:status")
async def test_the_status_tells_how_everything_is_doing(tmp_path: Path, add_plugin: Callable[..., Path]) -> None:
    add_plugin("Noisy", "print('{}')")
    async with run_server(tmp_path, settings=f'upstream_key = "{KEY}"\n') as running:
        await running.post("/v1/tools/LS", {})
        answer = await running.get("/v1/status")
    result = answer.json
    assert KEY not in answer.body.decode()
    assert (result["home"], result["project"]) == (str(tmp_path / "home"), str(tmp_path / "project"))
    assert (result["database"]["kind"], result["database"]["ok"], result["database"]["bytes"] > 0) == (
        "sqlite",
        True,
        True,
    )
    assert 0 < result["disk"]["free"] <= result["disk"]["total"]
    assert result["queue"] == {"waiting": 0, "running": 0, "requests": 1}
    assert result["events"]["newest"] >= 2
    assert result["plugins"]["by_state"]["ready"] >= 1
    assert result["mcp"] == {"by_state": {}, "crashes": 0}
    silent = {"answered": None, "failed": None, "error": ""}
    assert result["upstream"] == {"url": "https://api.openai.com/v1", "others": [], "contacts": {"": silent}}
    assert (result["memory_bytes"] > 10**6, result["first_run"]) == (True, False)


@pytest.mark.requirement("http:status")
async def test_the_status_tells_when_each_provider_last_answered_and_what_it_last_failed_with(tmp_path: Path) -> None:
    async with provider(KEY) as one:
        dead = '[upstreams.dead]\nurl = "http://127.0.0.1:1"\n'
        settings = f'upstream_url = "{one.url}"\nupstream_key = "{KEY}"\n{dead}'
        async with run_server(tmp_path, settings=settings) as running:
            await running.get("/v1/models")
            answer = await running.get("/v1/status")
    contacts = answer.json["upstream"]["contacts"]
    assert (contacts[""]["answered"] > 0, contacts[""]["failed"], contacts[""]["error"]) == (True, None, "")
    assert (contacts["dead"]["answered"], contacts["dead"]["failed"] > 0) == (None, True)
    assert "dead" in contacts["dead"]["error"]
    assert KEY not in answer.body.decode()


@pytest.mark.requirement("http:status")
async def test_the_first_run_ends_when_a_provider_is_set_or_somebody_says_so(tmp_path: Path) -> None:
    async with run_server(tmp_path) as running:
        first = (await running.get("/v1/status")).json["first_run"]
        await running.request("PATCH", "/v1/settings", json={"values": {"upstream_url": "http://127.0.0.1:9"}})
        provided = (await running.get("/v1/status")).json["first_run"]
        await running.request("PATCH", "/v1/settings", json={"values": {"upstream_url": None}})
        again = (await running.get("/v1/status")).json["first_run"]
        done = await running.post("/v1/setup/done")
    async with run_server(tmp_path) as running:
        later = (await running.get("/v1/status")).json["first_run"]
    assert (first, provided, again, done.status, later) == (True, False, True, 200, False)


@pytest.mark.requirement("http:status")
async def test_the_doctor_and_the_backup_are_there_too(tmp_path: Path) -> None:
    async with run_server(tmp_path, settings="port = 6008\n") as running:
        (running.home / "config.toml").chmod(0o644)
        await running.post("/v1/tools/LS", {})
        checks = (await running.get("/v1/doctor")).json["data"]
        backup = await running.post("/v1/backup")
        left = [file.name for file in running.home.iterdir() if "backup" in file.name]
    levels = {one["name"]: one["level"] for one in checks}
    assert (levels["settings"], levels["state"], levels["tools"]) == ("ok", "ok", "ok")
    home = next(one for one in checks if one["name"] == "home")
    assert (home["level"], home["fix"].startswith("Run: chmod 600")) == ("warn", True)
    with tarfile.open(fileobj=io.BytesIO(backup.body)) as archive:
        assert {"config.toml", "key", "state.db"} <= set(archive.getnames())
    assert backup.headers["Content-Disposition"].startswith('attachment; filename="toolyard-')
    assert left == []


@pytest.mark.requirement("http:status", "backup:restore")
async def test_a_backup_is_looked_at_confirmed_and_put_in_place_by_the_next_start(tmp_path: Path) -> None:
    gzip = {"Content-Type": "application/gzip"}
    restore = "/v1/backup/restore"
    async with run_server(tmp_path, settings='truncation_direction = "tail"\n') as running:
        await running.post("/v1/tools/LS", {})
        archive = (await running.post("/v1/backup")).body
        odd = await running.post(restore, data=b"no backup", headers=gzip)
        (running.home / "config.toml").write_text('truncation_direction = "head"\n')
        await running.post("/v1/tools/LS", {})
        first = await running.post(restore, data=archive, headers=gzip)
        body = (await running.post(restore, data=archive, headers=gzip)).json
        gone = await running.post(f"{restore}/{first.json['staged']}/confirm", {"fingerprint": body["fingerprint"]})
        other = await running.post(f"{restore}/{body['staged']}/confirm", {"fingerprint": "sha256:0"})
        nothing = (await running.get(restore)).json["waiting"]
        waits = await running.post(f"{restore}/{body['staged']}/confirm", {"fingerprint": body["fingerprint"]})
        unchanged = (running.home / "config.toml").read_text()
        left = [file.name for file in running.home.iterdir() if file.name.startswith(".restoring")]
        calls = len((await running.get("/v1/calls")).json["data"])
    assert (odd.status, "the file" in odd.json["error"]["message"]) == (400, True)
    assert (first.status, gone.status, other.status, nothing, waits.status) == (201, 404, 409, None, 200)
    assert set(body["files"]) == {"config.toml", "key", "publish-keys.json", "state.db"}
    assert (body["counts"]["call"], calls) == (1, 2)
    assert "toolyard serve --home" in waits.json["command"]
    assert (unchanged, left) == ('truncation_direction = "head"\n', [])
    async with run_server(tmp_path) as running:
        assert running.server.config.settings.truncation_direction == "tail"
        assert len((await running.get("/v1/calls")).json["data"]) == 1
        assert (await running.get(restore)).json["waiting"] is None
        (aside,) = running.home.glob("before-restore-*")
        assert (aside / "config.toml").read_text() == unchanged


@pytest.mark.requirement("http:status", "backup:restore")
async def test_a_backup_that_no_server_could_start_with_is_refused_and_one_can_be_taken_back(tmp_path: Path) -> None:
    gzip = {"Content-Type": "application/gzip"}
    async with run_server(tmp_path) as running:
        good = (await running.post("/v1/backup")).body
        (running.home / "config.toml").write_text('port = "many"\n')
        bad = (await running.post("/v1/backup")).body
        refused = await running.post("/v1/backup/restore", data=bad, headers=gzip)
        one = (await running.post("/v1/backup/restore", data=good, headers=gzip)).json
        thrown = await running.request("DELETE", f"/v1/backup/restore/{one['staged']}")
        one = (await running.post("/v1/backup/restore", data=good, headers=gzip)).json
        await running.post(f"/v1/backup/restore/{one['staged']}/confirm", {"fingerprint": one["fingerprint"]})
        waits = (await running.get("/v1/backup/restore")).json["waiting"]
        back = await running.request("DELETE", "/v1/backup/restore")
        after = (await running.get("/v1/backup/restore")).json["waiting"]
        left = [file.name for file in running.home.iterdir() if file.name.startswith(".restor")]
    assert (refused.status, "port" in refused.json["error"]["message"]) == (400, True)
    assert (thrown.status, waits["fingerprint"], back.status, after) == (200, one["fingerprint"], 200, None)
    assert left == []


@pytest.mark.requirement("http:auth")
@pytest.mark.parametrize("scope", [Scope.CHAT, Scope.TOOLS, Scope.APPROVE])
async def test_all_of_it_is_the_owners(running_server: RunningServer, scope: Scope) -> None:
    key = running_server.make_key(scope)
    for path in ("/v1/status", "/v1/doctor", "/v1/backup/restore"):
        assert (await running_server.get(path, key=key)).status == 403
    for path in ("/v1/backup", "/v1/backup/restore/x/confirm", "/v1/setup/done", "/v1/upstream/test"):
        assert (await running_server.post(path, {}, key=key)).status == 403
