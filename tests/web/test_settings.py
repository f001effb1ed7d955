"""Settings over HTTP: what holds and why, changes that are whole or nothing, and secrets that never come back."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.web.conftest import HttpResponse, RunningServer, run_server
from toolyard.gateway.turns.display import Show
from toolyard.settings import SETTINGS
from toolyard.web.security.scope import Scope

ROOT = Path(__file__).parents[2]
CONFIGURATION = ROOT / "docs" / "configuration.md"
KEY = "sk-canary-0c7d1f"
OTHER = "sk-canary-other-55"
OLD = "sk-canary-old-91"
FILE = f"""# my settings
upstream_url = "https://models.example.org/v1"
upstream_key = "{KEY}" # mine
# upstream_key = "{OLD}"
plugins_at_once = 3

[upstreams.local]
url = "http://127.0.0.1:11434"
key = "{OTHER}"
models = ["small"]
"""
SHOWN = FILE.replace(KEY, "[masked]").replace(f'"{OLD}"', "[masked]").replace(OTHER, "[masked]")


async def put(running: RunningServer, text: str, before: str, query: str = "") -> HttpResponse:
    return await running.request("PUT", f"/v1/settings{query}", json={"text": text, "before": before})


async def patch(running: RunningServer, **values: Any) -> HttpResponse:
    return await running.request("PATCH", "/v1/settings", json={"values": values})


def config_file(running: RunningServer) -> str:
    return (running.home / "config.toml").read_text()


def assert_no_secret(*answers: HttpResponse) -> bool:
    return not any(key in answer.body.decode() for answer in answers for key in (KEY, OTHER, OLD))


@pytest.mark.requirement("http:settings")
async def test_the_documentation_names_every_setting_that_takes_effect_without_a_restart(
    running_server: RunningServer,
) -> None:
    rows = (await running_server.get("/v1/settings")).json["settings"]
    table = CONFIGURATION.read_text("utf-8").split("| settings | take effect |")[1].split("| all others |")[0]
    named = [name for line in table.splitlines() for name in re.findall(r"`(\w+)`", line.split(" | ")[0])]
    assert sorted(named) == [row["name"] for row in rows if row["live"]]


@pytest.mark.requirement("console:settings")
async def test_every_setting_has_a_name_a_description_and_a_group_in_both_languages(
    running_server: RunningServer,
) -> None:
    answer = (await running_server.get("/v1/settings")).json
    groups = {group["id"] for group in answer["groups"]}
    assert {row["group"] for row in answer["settings"]} == groups
    for row in (*answer["groups"], *answer["settings"]):
        words = [row["title"], row["title_zh"], *([row["description"], row["description_zh"]] if "name" in row else ())]
        assert all(words), row
    assert len({row["title"] for row in answer["settings"]}) == len(SETTINGS)
    assert [row["choices"] for row in answer["settings"] if row["name"] == "chat_show"] == [[*Show]]


@pytest.mark.requirement("http:settings", "s:S-91")
async def test_every_setting_is_shown_with_where_it_comes_from_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLYARD_TRUNCATION_DIRECTION", "tail")
    async with run_server(tmp_path, settings=FILE) as running:
        answer = await running.get("/v1/settings")
    rows = {row["name"]: row for row in answer.json["settings"]}
    assert assert_no_secret(answer)
    assert answer.json["text"] == SHOWN
    assert list(rows) == sorted(setting.name for setting in SETTINGS)
    assert [rows["upstream_key"][key] for key in ("value", "set", "source")] == ["[masked]", True, "file"]
    assert rows["upstreams"]["value"] == {
        "local": {"url": "http://127.0.0.1:11434", "key": "[masked]", "models": ["small"]}
    }
    direction = rows["truncation_direction"]
    assert [direction[key] for key in ("value", "source", "variable")] == [
        "tail",
        "env",
        "TOOLYARD_TRUNCATION_DIRECTION",
    ]
    assert (direction["kind"], direction["choices"], direction["live"]) == ("choice", ["head", "tail"], False)
    kinds = {name: rows[name]["kind"] for name in ("port", "warm_starts", "allowed_hosts", "shared_keys", "time_zone")}
    assert list(kinds.values()) == ["number", "bool", "list", "table", "text"]
    assert (rows["approval_mode"]["live"], rows["port"]["source"]) == (True, "default")


@pytest.mark.requirement("http:settings")
async def test_single_settings_are_changed_and_everything_else_stays(tmp_path: Path) -> None:
    async with run_server(tmp_path, settings=FILE) as running:
        done = await patch(running, approval_mode="read-only", plugins_at_once=None, time_zone="Asia/Shanghai")
        rows = {row["name"]: row for row in (await running.get("/v1/settings")).json["settings"]}
        mode = running.yard.state.approvals.mode
        written = config_file(running)
    assert (done.status, done.json["now"]) == (200, ["approval_mode", "time_zone"])
    assert done.json["after_restart"] == ["plugins_at_once"]
    assert assert_no_secret(done)
    assert "+approval_mode" in done.json["diff"]
    assert mode == "read-only"
    added = 'approval_mode = "read-only"\ntime_zone = "Asia/Shanghai"\n'
    assert written == FILE.replace("plugins_at_once = 3\n", added)
    assert (tmp_path / "home" / "config.toml").stat().st_mode & 0o777 == 0o600
    assert [rows[name]["holds"] for name in ("approval_mode", "time_zone", "plugins_at_once")] == [True, True, False]


@pytest.mark.requirement("http:settings", "r:R91")
async def test_a_wrong_setting_is_refused_with_its_place_and_nothing_is_written(tmp_path: Path) -> None:
    async with run_server(tmp_path, settings=FILE) as running:
        wrong = await patch(running, port=0, nonsense=1)
        typed = await patch(running, upstreams={"a": {"url": None}})
        broken = await put(running, SHOWN.replace("plugins_at_once = 3", "plugins_at_once = "), SHOWN)
        unknown = await put(running, SHOWN + "\n[more]\nx = 1\n", SHOWN)
        written = config_file(running)
    assert [answer.status for answer in (wrong, typed, broken, unknown)] == [422] * 4
    # What was given by its name has no place in a file; what stands in the file has one.
    named = [one["message"].partition(":")[0] for one in wrong.json["problems"]]
    assert named == ["unknown setting 'nonsense'", "port"]
    assert "config.toml" not in str((wrong.json, typed.json))
    assert wrong.json["error"]["type"] == "invalid_request_error"
    assert [(one["line"], one["column"] > 0) for one in broken.json["problems"]] == [(5, True)]
    assert [one["line"] for one in unknown.json["problems"]] == [12]
    assert written == FILE


@pytest.mark.requirement("http:settings")
async def test_the_whole_file_is_replaced_only_as_it_was_read_and_masked_secrets_stay(tmp_path: Path) -> None:
    async with run_server(tmp_path, settings=FILE) as running:
        text = SHOWN.replace("plugins_at_once = 3", "plugins_at_once = 4")
        looked = await put(running, text, SHOWN, "?check=true")
        untouched = config_file(running)
        done = await put(running, text, SHOWN)
        late = await put(running, text, SHOWN)
        written = config_file(running)
        empty = await put(running, 'database = "[masked]"\n', done.json["text"])
    assert (looked.status, looked.json["written"], untouched) == (200, False, FILE)
    assert [line for line in looked.json["diff"].splitlines() if line.startswith(("+p", "-p"))] == [
        "-plugins_at_once = 3",
        "+plugins_at_once = 4",
    ]
    assert (done.status, done.json["after_restart"]) == (200, ["plugins_at_once"])
    assert written == FILE.replace("plugins_at_once = 3", "plugins_at_once = 4")
    assert (late.status, late.json["error"]["code"]) == (409, "conflict")
    assert (empty.status, "[masked] stands for" in empty.json["problems"][0]["message"]) == (422, True)
    assert assert_no_secret(looked, done, late, empty)


@pytest.mark.requirement("s:S-72")
async def test_a_stored_key_goes_to_no_other_origin_unless_it_is_given_anew(tmp_path: Path) -> None:
    evil = "https://evil.example.org/v1"
    async with run_server(tmp_path, settings=FILE) as running:
        refused = [
            await patch(running, upstream_url=evil),
            await patch(running, upstream_url=None),
            await patch(running, upstream_url=evil, upstream_key="[masked]"),
            await patch(running, upstreams={"local": {"url": evil, "key": "[masked]"}}),
            await put(running, SHOWN.replace("https://models.example.org", "https://evil.example.org"), SHOWN),
            await put(running, SHOWN.replace("http://127.0.0.1:11434", "http://127.0.0.1:11435"), SHOWN),
        ]
        before = config_file(running)
        same = await patch(running, upstream_url="https://models.example.org/v2")
        anew = await patch(running, upstream_url=evil, upstream_key=KEY)
        gone = await patch(running, upstream_url="http://127.0.0.1:9", upstream_key=None)
    assert [answer.status for answer in refused] == [422] * len(refused)
    assert all("belongs to" in answer.json["error"]["message"] for answer in refused)
    assert assert_no_secret(*refused)
    assert before == FILE
    assert [same.status, anew.status, gone.status] == [200, 200, 200]


OPTIONS = f"""upstream_url = "http://127.0.0.1:9/v1"

[upstream_options]
keys = ["{KEY}", "{OLD}"] # two
proxy = "http://me:{OTHER}@127.0.0.1:3128"
idle_seconds = 30
query = {{ api-version = "2024-10-21", sig_key = "{OTHER}" }}

[upstream_options.headers]
X-Title = "Yard"
Authorization = "Bearer {OTHER}"

[upstreams.far]
url = "https://far.example.org"
headers = {{ X-Api-Key = "{OTHER}" }}
tool_rounds = 3

[fallbacks]
gpt = ["far/gpt"]
"""


@pytest.mark.requirement("clients:provider-options", "s:S-91")
async def test_secrets_among_the_options_of_providers_are_masked_and_come_back(tmp_path: Path) -> None:
    async with run_server(tmp_path, settings=OPTIONS) as running:
        view = await running.get("/v1/settings")
        done = await put(running, view.json["text"].replace("= 30", "= 45"), view.json["text"])
        written = config_file(running)
        partly = await patch(
            running, upstreams={"far": {"url": "https://far.example.org", "headers": {"X-Api-Key": "[masked]"}}}
        )
        stored = config_file(running)
    assert assert_no_secret(view, done, partly)
    rows = {row["name"]: row for row in view.json["settings"]}
    assert rows["upstream_options"]["kind"] == "table"
    assert rows["upstream_options"]["value"] == {
        "keys": "[masked]",
        "headers": {"X-Title": "[masked]", "Authorization": "[masked]"},
        "query": {"api-version": "2024-10-21", "sig_key": "[masked]"},
        "proxy": "[masked]",
        "idle_seconds": 30,
    }
    assert rows["upstreams"]["value"]["far"] == {
        "url": "https://far.example.org",
        "key": None,
        "models": [],
        "headers": {"X-Api-Key": "[masked]"},
        "tool_rounds": 3,
    }
    assert rows["fallbacks"]["value"] == {"gpt": ["far/gpt"]}
    assert (done.status, done.json["now"]) == (200, ["upstream_options"])
    assert written == OPTIONS.replace("= 30", "= 45")
    assert (partly.status, f'"{OTHER}"' in stored, "tool_rounds" in stored) == (200, True, False)


@pytest.mark.requirement("console:providers:rename", "s:S-72")
async def test_a_renamed_provider_keeps_its_secrets_and_takes_none_of_another(tmp_path: Path) -> None:
    far = {"url": "https://far.example.org", "headers": {"X-Api-Key": "[masked]"}, "former_names": ["far"]}
    async with run_server(tmp_path, settings=OPTIONS) as running:
        unknown = await patch(running, upstreams={"near": far | {"former_names": []}})
        copied = await patch(running, upstreams={"far": {"url": "https://far.example.org"}, "near": far})
        moved = await patch(running, upstreams={"near": far | {"url": "https://evil.example.org"}})
        kept = config_file(running)
        done = await patch(running, upstreams={"near": far}, fallbacks={"gpt": ["near/gpt"]})
        stored = config_file(running)
        (shown,) = [row for row in (await running.get("/v1/settings")).json["settings"] if row["name"] == "upstreams"]
    assert [answer.status for answer in (unknown, copied, moved, done)] == [422, 422, 422, 200]
    assert "belongs to" in moved.json["error"]["message"]
    assert kept == OPTIONS
    assert (f'"{OTHER}"' in stored, "[upstreams.far" in stored) == (True, False)
    assert shown["value"]["near"]["former_names"] == ["far"]
    assert assert_no_secret(unknown, copied, moved, done)


@pytest.mark.requirement("clients:provider-options", "s:S-72")
async def test_no_stored_secret_of_the_options_goes_to_another_place(tmp_path: Path) -> None:
    async with run_server(tmp_path, settings=OPTIONS) as running:
        text = (await running.get("/v1/settings")).json["text"]
        refused = [
            await put(running, text.replace("http://127.0.0.1:9/v1", "http://127.0.0.1:10/v1"), text),
            await put(running, text.replace("far.example", "evil.example"), text),
            await put(running, text.replace('proxy = "[masked]"', 'proxy = "http://127.0.0.1:3129"'), text),
        ]
        far = text.replace("tool_rounds = 3", 'proxy = "http://127.0.0.1:3129"')
        encrypted = await put(running, far, text)  # the proxy sees nothing of it
    assert [answer.status for answer in refused] == [422] * 3
    assert all("belongs to" in answer.json["error"]["message"] for answer in refused)
    assert "upstream_options.keys" in refused[0].json["error"]["message"]
    assert "upstreams.far.headers" in refused[1].json["error"]["message"]
    assert "through http://127.0.0.1:3129" in refused[2].json["error"]["message"]
    assert assert_no_secret(*refused, encrypted)
    assert encrypted.status == 200


@pytest.mark.requirement("s:S-72", "http:settings")
async def test_what_the_environment_sets_is_not_changed_behind_its_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    async with run_server(tmp_path) as running:
        url = await patch(running, upstream_url="https://evil.example.org")
        key = await patch(running, upstream_key=OTHER)
        response = await running.get("/v1/settings")
    assert (url.status, "belongs to https://api.openai.com" in url.json["error"]["message"]) == (422, True)
    assert (key.status, "OPENAI_API_KEY" in key.json["error"]["message"]) == (422, True)
    assert assert_no_secret(url, key, response)
    assert not (tmp_path / "home" / "config.toml").exists()


@pytest.mark.requirement("http:settings", "s:S-91")
async def test_a_file_with_a_mistake_is_shown_without_its_secrets_and_can_be_mended(tmp_path: Path) -> None:
    async with run_server(tmp_path, settings=FILE) as running:
        (running.home / "config.toml").write_text(FILE + "port = = 3\n")
        body = await running.get("/v1/settings")
        held = await put(running, SHOWN, body.json["text"])
        mended = await put(running, "port = 6007\n", body.json["text"])
    assert assert_no_secret(body, held, mended)
    assert [one["line"] for one in body.json["problems"]] == [11]
    assert (held.status, "enter the value itself" in held.json["error"]["message"]) == (422, True)
    assert mended.status == 200


@pytest.mark.requirement("s:S-72", "http:auth")
@pytest.mark.parametrize("scope", [Scope.CHAT, Scope.TOOLS, Scope.APPROVE])
async def test_settings_are_the_owners(running_server: RunningServer, scope: Scope) -> None:
    key = running_server.make_key(scope)
    assert (await running_server.get("/v1/settings", key=key)).status == 403
    for method in ("PUT", "PATCH"):
        assert (await running_server.request(method, "/v1/settings", key=key, json={})).status == 403


@pytest.mark.requirement("http:settings")
async def test_a_secret_that_is_an_ordinary_word_spoils_no_other_setting(tmp_path: Path) -> None:
    text = 'upstream_url = "http://ollama.example:11434"\nupstream_key = "ollama"\n'
    async with run_server(tmp_path, settings=text) as running:
        body = (await running.get("/v1/settings")).json
        done = await put(running, body["text"] + "port = 6009\n", body["text"])
        odd = await put(running, 'time_zone = "[masked]"\n', done.json["text"])
        written = config_file(running)
    assert body["text"] == text.replace('"ollama"', '"[masked]"')
    assert (done.status, written) == (200, text + "port = 6009\n")
    assert (odd.status, "there was no secret" in odd.json["error"]["message"]) == (422, True)


SEVERAL_LINES = '''# the key is below
port = 6006
upstream_key = """
sk-canary-a
sk-canary-b"""
database "canary-c"
password: canary-d
upstream_url = "https://me:canary-e@example.org"
tokens = [
  "canary-f",
  "canary-g",
]
[shared_keys]
A = ["B"]
port = =
[upstreams.x]
key = \'\'\'
canary-h
'''


@pytest.mark.requirement("http:settings", "s:S-91")
async def test_secrets_in_comments_and_in_wrong_places_are_masked_and_come_back_each_as_it_was(tmp_path: Path) -> None:
    text = f"""# upstream_key = "{KEY}-1"
# upstream_key = "{KEY}-2"
upstream_key = "{KEY}-3" # before: {KEY}-4
port = 6005 # token: {KEY}-5
chat_show = "raw" # "#" is no comment in a text

[shared_keys] # not secret
TokenCounter = ["VarHttpUrl"]
"""
    async with run_server(tmp_path, settings=text) as running:
        body = (await running.get("/v1/settings")).json["text"]
        done = await put(running, body.replace("6005", "6006"), body)
        written = config_file(running)
        (running.home / "config.toml").write_text(f'[upstream]\nkey = "{OTHER}"\n')
        misplaced = await running.get("/v1/settings")
        (running.home / "config.toml").write_text(f'upstreams = {{ a = {{ key = "{OTHER}" }} }}\nport =\n')
        broken = await running.get("/v1/settings")
        (running.home / "config.toml").write_text(SEVERAL_LINES)
        several = (await running.get("/v1/settings")).json["text"]
        put_back = await put(running, SEVERAL_LINES, several)
    assert "canary" not in several
    assert "canary" not in put_back.body.decode()
    assert [line for line in several.split("\n") if line and "[masked]" not in line] == [
        *("# the key is below", "port = 6006", "[shared_keys]", 'A = ["B"]', "port = =", "[upstreams.x]")
    ]
    assert (done.status, written) == (200, text.replace("6005", "6006"))
    assert assert_no_secret(done, misplaced, broken)
    assert (KEY in body, body.count("[masked]")) == (False, 5)
    assert '# not secret\nTokenCounter = ["VarHttpUrl"]' in body
