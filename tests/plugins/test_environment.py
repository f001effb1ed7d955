"""The environment of a plugin's child: what it holds, and what it never does."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from toolyard.plugins.package.config_env import is_secret_name
from toolyard.plugins.package.environment import (
    HostEnvironment,
    build_call_variables,
    build_environment,
    data_folder,
    make_data_folder,
)
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.json import Json
from toolyard.protocol.manifests.manifest import ConfigKey, Manifest, PluginType

NEEDED = {"PATH", "HOME", "LANG", "TZ", "TMPDIR", "PYTHONIOENCODING", "PYTHONUNBUFFERED", "PROJECT_BASE_PATH"}
NEEDED |= {"SERVER_PORT"}
HOST = {
    "PATH": "/usr/bin:/bin",
    "LANG": "de_DE.UTF-8",
    "TZ": "Asia/Shanghai",
    "HOME": "/home/owner",
    "API_Key": "canary-upstream",
    "OPENAI_API_KEY": "canary-openai",
    "Key": "canary-host",
    "VCP_Key": "canary-socket",
    "AdminPassword": "canary-admin",
    "TOOLYARD_HOME": "canary-home",
    "AWS_SECRET_ACCESS_KEY": "canary-cloud",
    "LD_PRELOAD": "canary-preload",
    "VarHttpUrl": "http://10.0.0.2",
}


def plugin(*config: ConfigKey, kind: PluginType = PluginType.SYNCHRONOUS, name: str = "Probe") -> Manifest:
    return Manifest(name=name, display_name=name, type=kind, command_line="python p.py", timeout_s=60, config=config)


def key(name: str, kind: str = "string", default: Json = None) -> ConfigKey:
    return ConfigKey(name=name, type=kind, default=default, description="", required=False)


@pytest.fixture
def host_env(tmp_path: Path) -> HostEnvironment:
    return HostEnvironment(environ=HOST, project=tmp_path / "project", home=tmp_path / "home", port=6005)


def share_keys(host_env: HostEnvironment, **shared: list[str]) -> HostEnvironment:
    return HostEnvironment(
        environ={**HOST, "SETTING_OF_HOST": "canary-setting"},
        project=host_env.project,
        home=host_env.home,
        port=host_env.port,
        secret_keys=["SETTING_OF_HOST"],
        shared=shared,
    )


@pytest.mark.requirement("plugin:environment", "s:S-80")
def test_a_child_that_prints_its_environment_shows_the_allowed_keys_only(host_env: HostEnvironment) -> None:
    host_env.project.mkdir()
    manifest = plugin(key("PREFIX", default="Echo: "))
    values = {
        **build_environment(manifest, {"OWN": "1"}, host_env).values,
        **build_call_variables(manifest, request_address="10.0.0.9"),
    }
    program = "import json, os; print(json.dumps(dict(os.environ)))"
    printed = subprocess.run([sys.executable, "-c", program], env=values, capture_output=True, check=True, timeout=60)
    seen = json.loads(printed.stdout)
    assert set(seen) - {"LC_CTYPE"} == NEEDED | {"OWN", "PREFIX", "VCP_REQUEST_IP"}
    assert "canary" not in printed.stdout.decode()
    assert (seen["HOME"], seen["PROJECT_BASE_PATH"]) == (
        str(host_env.home / "plugin-data/Probe"),
        str(host_env.project),
    )
    assert (seen["LANG"], seen["TZ"], seen["SERVER_PORT"]) == ("de_DE.UTF-8", "Asia/Shanghai", "6005")
    assert (seen["PYTHONIOENCODING"], seen["PYTHONUNBUFFERED"]) == ("utf-8", "1")
    assert seen["VCP_REQUEST_IP"] == "10.0.0.9"


@pytest.mark.requirement("plugin:environment")
def test_a_bare_host_still_gives_what_every_program_needs(host_env: HostEnvironment) -> None:
    bare = HostEnvironment(environ={}, project=host_env.project, home=host_env.home, port=1)
    values = build_environment(plugin(), {}, bare).values
    assert set(values) >= NEEDED - {"TZ"}
    assert values["LANG"] == "C.UTF-8"


@pytest.mark.requirement("plugin:config:file")
def test_every_key_of_config_env_reaches_the_child_also_without_a_schema(host_env: HostEnvironment) -> None:
    values = build_environment(plugin(), {"FREE": "a b", "Image@Key": "x"}, host_env).values
    assert (values["FREE"], values["Image@Key"]) == ("a b", "x")


@pytest.mark.requirement("plugin:config:cascade")
def test_the_plugins_file_wins_over_the_host_and_the_host_over_the_default(host_env: HostEnvironment) -> None:
    schema = plugin(key("VarHttpUrl", default="http://default"), key("OTHER", default="d"))
    assert build_environment(schema, {"VarHttpUrl": "http://own"}, host_env).values["VarHttpUrl"] == "http://own"
    from_host = build_environment(schema, {}, host_env)
    assert (from_host.values["VarHttpUrl"], from_host.from_host) == ("http://10.0.0.2", ("VarHttpUrl",))
    assert from_host.values["OTHER"] == "d"


@pytest.mark.requirement("plugin:config:cascade")
@pytest.mark.parametrize(
    ("kind", "written", "typed"),
    [
        ("integer", "12abc", "12"),
        ("integer", " -3.9", "-3"),
        ("integer", "abc", None),
        ("integer", "", None),
        ("number", "2.5e3x", "2.5e3"),
        ("number", "x", None),
        ("boolean", "True", "true"),
        ("boolean", " TRUE ", "true"),
        ("boolean", "yes", "false"),
        ("string", " as is ", " as is "),
        ("string", "", ""),
    ],
)
def test_a_setting_is_typed_by_its_schema(
    host_env: HostEnvironment, kind: str, written: str, typed: str | None
) -> None:
    environment = build_environment(plugin(key("K", kind)), {"K": written}, host_env)
    assert environment.values.get("K") == typed
    assert bool(environment.problems) == (typed is None)


@pytest.mark.requirement("plugin:config:cascade")
@pytest.mark.parametrize(
    ("kind", "default", "text"),
    [("boolean", True, "true"), ("boolean", False, "false"), ("integer", 7, "7"), ("integer", "8x", "8"),
     ("number", 1.5, "1.5"), ("string", "é", "é"), ("string", ["a", 1], '["a",1]'), ("string", None, None)],
)  # fmt: skip
def test_a_default_of_the_schema_is_written_as_text(
    host_env: HostEnvironment, kind: str, default: Json, text: str | None
) -> None:
    assert build_environment(plugin(key("K", kind, default)), {}, host_env).values.get("K") == text


@pytest.mark.requirement("plugin:config:cascade")
def test_a_value_of_the_wrong_type_leaves_the_default(host_env: HostEnvironment) -> None:
    assert build_environment(plugin(key("K", "integer", 5)), {"K": "many"}, host_env).values["K"] == "5"


@pytest.mark.requirement("s:S-80", "plugin:environment")
@pytest.mark.parametrize(
    "name", ["API_Key", "OPENAI_API_KEY", "Key", "VCP_Key", "AdminPassword", "TOOLYARD_HOME", "AWS_SECRET_ACCESS_KEY"]
)
def test_naming_a_host_secret_in_the_schema_does_not_give_it(host_env: HostEnvironment, name: str) -> None:
    assert name not in build_environment(plugin(key(name)), {}, host_env).values


@pytest.mark.requirement("s:S-80")
def test_an_address_with_a_login_in_it_is_a_secret(host_env: HostEnvironment) -> None:
    host = HostEnvironment(environ={"DB": "pg://me:pw@h/d"}, project=host_env.project, home=host_env.home, port=1)
    assert "DB" not in build_environment(plugin(key("DB")), {}, host).values


@pytest.mark.requirement("plugin:environment:shared")
def test_a_key_shared_by_name_reaches_that_plugin_only(host_env: HostEnvironment) -> None:
    shared = share_keys(host_env, Probe=["VarHttpUrl", "AWS_SECRET_ACCESS_KEY", "ABSENT"])
    environment = build_environment(plugin(), {}, shared)
    assert environment.values["VarHttpUrl"] == "http://10.0.0.2"
    assert environment.from_host == ("AWS_SECRET_ACCESS_KEY", "VarHttpUrl")
    assert environment.secrets == ("canary-cloud",)
    assert "VarHttpUrl" not in build_environment(plugin(name="Other"), {}, shared).values


@pytest.mark.requirement("plugin:environment:shared")
@pytest.mark.parametrize(
    "name", ["API_Key", "api_key", "Key", "VCP_Key", "AdminPassword", "TOOLYARD_HOME", "SETTING_OF_HOST", "THEIR_TOKEN"]
)
def test_keys_of_the_host_its_upstream_or_other_plugins_cannot_be_shared(host_env: HostEnvironment, name: str) -> None:
    environment = build_environment(
        plugin(), {}, share_keys(host_env, Probe=[name]), keys_of_others=["THEIR_TOKEN", "COLOUR"]
    )
    assert name not in environment.values
    assert "canary" not in "".join(environment.values.values())
    assert any(name in problem and "cannot be shared" in problem for problem in environment.problems)


@pytest.mark.requirement("plugin:environment:async")
def test_an_asynchronous_child_also_has_its_callback(host_env: HostEnvironment) -> None:
    base = "http://127.0.0.1:9/plugin-callback/~T"
    asynchronous = plugin(kind=PluginType.ASYNCHRONOUS)
    added = build_call_variables(asynchronous, request_address="127.0.0.1", callback_base=base)
    assert added == {"VCP_REQUEST_IP": "127.0.0.1", "CALLBACK_BASE_URL": base, "PLUGIN_NAME_FOR_CALLBACK": "Probe"}
    assert set(build_call_variables(plugin(), request_address="::1", callback_base=base)) == {"VCP_REQUEST_IP"}


@pytest.mark.requirement("plugin:environment:async", "plugin:environment")
@pytest.mark.parametrize(
    "name",
    ["CALLBACK_BASE_URL", "PLUGIN_NAME_FOR_CALLBACK", "VCP_REQUEST_IP", "HOME", "PROJECT_BASE_PATH", "SERVER_PORT"],
)
def test_a_plugin_cannot_set_what_the_host_decides(host_env: HostEnvironment, name: str) -> None:
    theirs = build_environment(plugin(key(name, default="evil")), {name: "evil"}, host_env)
    assert theirs.values.get(name) != "evil"


@pytest.mark.requirement("plugin:environment", "s:S-90")
@pytest.mark.parametrize("name", ["Wan2.1VideoGen", "../../escape", "a/b", "..", "回声", "x" * 300])
def test_each_plugin_has_a_data_folder_that_only_its_owner_can_enter(tmp_path: Path, name: str) -> None:
    (tmp_path / "plugin-data").mkdir(mode=0o755)
    folder = make_data_folder(tmp_path, name)
    assert folder.parent == tmp_path / "plugin-data"
    assert [place.stat().st_mode & 0o777 for place in (folder, folder.parent)] == [0o700, 0o700]
    assert make_data_folder(tmp_path, name) == data_folder(tmp_path, name) == folder


@pytest.mark.requirement("plugin:environment")
def test_a_data_folder_that_cannot_be_made_is_a_failure_of_the_start(tmp_path: Path) -> None:
    (tmp_path / "plugin-data").write_text("in the way")
    with pytest.raises(Failure, match="cannot be made") as failed:
        make_data_folder(tmp_path, "Probe")
    assert failed.value.reason is Reason.START_FAILED


@pytest.mark.requirement("confinement:links")
def test_a_data_folder_that_is_a_link_is_refused_and_what_it_leads_to_stays_as_it_is(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    data_folder(tmp_path, "Probe").parent.mkdir()
    data_folder(tmp_path, "Probe").symlink_to(elsewhere)
    with pytest.raises(Failure, match="cannot be made"):
        make_data_folder(tmp_path, "Probe")
    assert elsewhere.stat().st_mode & 0o777 == 0o755
    assert list(elsewhere.iterdir()) == []


@pytest.mark.requirement("plugin:config:cascade")
def test_a_required_setting_that_is_missing_is_told(host_env: HostEnvironment) -> None:
    needed = ConfigKey(name="TOKEN", required=True)
    assert build_environment(plugin(needed), {}, host_env).missing == ("TOKEN",)
    assert build_environment(plugin(needed), {"TOKEN": ""}, host_env).missing == ("TOKEN",)
    assert build_environment(plugin(needed), {"TOKEN": "x"}, host_env).missing == ()


@pytest.mark.requirement("s:S-80")
def test_no_secret_stands_in_what_is_printed_of_an_environment(host_env: HostEnvironment) -> None:
    assert "canary" not in repr(host_env) + repr(build_environment(plugin(), {"MY_KEY": "canary"}, host_env))


@pytest.mark.requirement("s:S-80")
@pytest.mark.parametrize(
    ("name", "secret"),
    [("DOUBAO_API_KEY", True), ("Image_Key", True), ("accessToken", True), ("DB_PASSWORD", True), ("apikey", True),
     ("VCP_Key", True), ("client-secret", True), ("KEYBOARD", False), ("MAX_RESULTS", False), ("MONKEY", False),
     ("AUTHOR", False), ("VarHttpUrl", False), ("PASSTHROUGH", False)],
)  # fmt: skip
def test_a_name_tells_whether_its_value_is_a_secret(host_env: HostEnvironment, name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret
    assert build_environment(plugin(), {name: "the value"}, host_env).secrets == (("the value",) if secret else ())
