"""Plugin manifests: what is read, what is said about mistakes, and the tool that comes of it."""

import ast
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.protocol.access import Access, ConfinementLevel, ProjectAccess
from toolyard.protocol.arguments import coerce_value
from toolyard.protocol.manifests.manifest import Command, ConfigKey, Limits, Manifest, ManifestProblem, PluginType, Push
from toolyard.protocol.manifests.manifest_parser import read_manifest
from toolyard.protocol.manifests.spec import command_spec, tool_spec
from toolyard.protocol.tool import Risk, Translation
from toolyard.protocol.tool_text import write_plugin

ROOT = Path(__file__).parents[2]
MINIMAL: dict[str, Any] = {"name": "Tiny", "pluginType": "synchronous", "entryPoint": {"command": "python tiny.py"}}
ECHO_CALL = "<<<[TOOL_REQUEST]>>>\ntool_name:「始」EchoPlugin「末」,\ntext:「始」{}「末」\n<<<[END_TOOL_REQUEST]>>>"
ECHO_DESCRIPTION = (
    "调用此工具将一段文本原样返回。\n参数:\n- text (字符串, 必需): 需要返回的文本内容。\n调用格式:\n"
    + ECHO_CALL.format("你好，世界！")
)
ECHO: dict[str, Any] = {
    "manifestVersion": "1.0.0",
    "name": "EchoPlugin",
    "version": "1.0.0",
    "displayName": "回声插件",
    "description": "一个简单的插件，它会原样返回你发送给它的任何文本。",
    "author": "Your Name",
    "pluginType": "synchronous",
    "entryPoint": {"type": "python", "command": "python echo.py"},
    "communication": {"protocol": "stdio", "timeout": 5000},
    "configSchema": {
        "ECHO_PREFIX": {"type": "string", "description": "在返回的文本前添加的前缀。", "default": "Echo: "}
    },
    "capabilities": {
        "invocationCommands": [
            {
                "commandIdentifier": "EchoText",
                "description": ECHO_DESCRIPTION,
                "example": ECHO_CALL.format("这是一个测试。"),
            }
        ]
    },
}
VIDEO: dict[str, Any] = {
    "name": "Wan2.1VideoGen",
    "displayName": "视频生成器 (Wan2.1)",
    "pluginType": "asynchronous",
    "entryPoint": {"command": "python video_handler.py"},
    "communication": {"protocol": "stdio", "timeout": 1800000},
    "capabilities": {
        "invocationCommands": [
            {
                "command": "submit",
                "description": "提交一个新的视频生成任务...{{{{VCP_ASYNC_RESULT::Wan2.1VideoGen::{id}}}}}",
            },
            {"command": "query", "description": "查询指定 request_id 的视频生成任务状态..."},
        ]
    },
    "webSocketPush": {
        "enabled": True,
        "messageType": "video_generation_status",
        "usePluginResultAsMessage": True,
        "targetClientType": "VCPLog",
    },
}


def read_valid(**fields: Any) -> Manifest:
    parsed = read_manifest(json.dumps({**MINIMAL, **fields}))
    assert parsed.manifest is not None, parsed.problems
    return parsed.manifest


def problems(**fields: Any) -> list[ManifestProblem]:
    return list(read_manifest(json.dumps({**MINIMAL, **fields})).problems)


VIDEO_WITH_COMMENTS = """\
{
  "name": "Wan2.1VideoGen",
  "displayName": "视频生成器 (Wan2.1)",
  "pluginType": "asynchronous", // 关键点1: 类型必须是 "asynchronous"
  "entryPoint": {
    "command": "python video_handler.py"
  },
  "communication": {
    "protocol": "stdio",
    "timeout": 1800000 // 建议设置一个较长的超时时间
  },
  "capabilities": {
    "invocationCommands": [
      {
        "command": "submit",
        "description": "提交一个新的视频生成任务...这是一个动态上下文占位符...请在你的回复中包含以下占位符原文：{{{{VCP_ASYNC_RESULT::Wan2.1VideoGen::{req_id_submit}}}}}" // 关键点2: 必须指导AI返回占位符
      },
      {
        "command": "query",
        "description": "查询指定 request_id 的视频生成任务状态..." // 提供一个手动查询状态的命令作为备用
      }
    ]
  },
  "webSocketPush": { // 关键点3: （可选）配置WebSocket推送
    "enabled": true,
    "messageType": "video_generation_status",
    "usePluginResultAsMessage": true,
    "targetClientType": "VCPLog"
  }
}
"""  # noqa: E501 as it is printed


def refusals(text: str) -> list[ManifestProblem]:
    parsed = read_manifest(text)
    assert parsed.manifest is None
    return [problem for problem in parsed.problems if not problem.warning]


def manifest_with(*commands: dict[str, Any], **fields: Any) -> Manifest:
    return read_valid(capabilities={"invocationCommands": list(commands)}, **fields)


def derive_parameters(description: str, example: str = "", **fields: Any) -> dict[str, Any]:
    command = manifest_with({"description": description, "example": example, **fields}).commands[0]
    assert command.derived is (command.parameters is not None)
    return command.parameters or {}


# --- what the founding document shows


@pytest.mark.requirement("plugin:seed-manifests", "plugin:name", "plugin:commands", "plugin:timeout")
def test_the_echo_plugin_of_the_founding_document_loads_without_a_remark() -> None:
    parsed = read_manifest(json.dumps(ECHO, ensure_ascii=False, indent=2))
    assert parsed.problems == ()
    assert parsed.manifest == Manifest(
        name="EchoPlugin",
        display_name="回声插件",
        description="一个简单的插件，它会原样返回你发送给它的任何文本。",
        version="1.0.0",
        author="Your Name",
        type=PluginType.SYNCHRONOUS,
        command_line="python echo.py",
        timeout_s=5.0,
        config=(
            ConfigKey(name="ECHO_PREFIX", type="string", default="Echo: ", description="在返回的文本前添加的前缀。"),
        ),
        commands=(
            Command(
                name="EchoText",
                description=ECHO_DESCRIPTION,
                example=ECHO_CALL.format("这是一个测试。"),
                parameters={
                    "type": "object",
                    "properties": {"text": {"type": "string", "description": "需要返回的文本内容。"}},
                    "required": ["text"],
                    "additionalProperties": True,
                },
                derived=True,
            ),
        ),
        fields=ECHO,
    )


@pytest.mark.requirement("plugin:seed-manifests", "plugin:commands", "plugin:timeout")
def test_the_video_plugin_of_the_founding_document_loads_with_all_its_fields() -> None:
    parsed = read_manifest(json.dumps(VIDEO, ensure_ascii=False))
    assert parsed.manifest is not None
    assert parsed.problems == ()
    assert parsed.manifest.type is PluginType.ASYNCHRONOUS
    assert [command.name for command in parsed.manifest.commands] == ["submit", "query"]
    assert parsed.manifest.timeout_s == 1800
    assert parsed.manifest.push == Push(
        enabled=True, message_type="video_generation_status", target_client_type="VCPLog", use_result=True
    )
    assert parsed.manifest.fields == VIDEO


# --- fields


@pytest.mark.requirement("plugin:unknown-fields")
def test_unknown_fields_are_kept_at_every_level() -> None:
    odd = {**ECHO, "lifecycle": {"loadOnStartup": True}, "entryPoint": {"command": "x", "runtime": ["a", None]}}
    assert read_manifest(json.dumps(odd)).manifest is not None
    assert read_valid(**odd).fields == odd


@pytest.mark.requirement("plugin:name")
@pytest.mark.parametrize("name", ["EchoPlugin", "Wan2.1VideoGen", "a", "_x-1", "x" * 128])
def test_a_good_name_is_taken_as_it_is(name: str) -> None:
    assert read_valid(name=name).name == name
    assert tool_spec(read_valid(name=name)).name == name


@pytest.mark.requirement("plugin:name")
@pytest.mark.parametrize("name", ["", ".", "..", "-rf", "a/b", "a b", "a\n", "回声", "x" * 129, 5, ["a"], "a\u200b"])
def test_a_name_that_cannot_be_called_or_kept_in_a_path_is_refused(name: Any) -> None:
    (problem,) = refusals(json.dumps({**MINIMAL, "name": name}))
    assert problem.field == "name"
    assert "letters, digits" in problem.fix


@pytest.mark.requirement("plugin:name")
def test_a_plugin_without_a_display_name_is_shown_by_its_name() -> None:
    assert read_valid().display_name == "Tiny"
    assert read_valid(displayName="Tiny tool").display_name == "Tiny tool"


@pytest.mark.requirement("plugin:required-fields")
def test_a_manifest_without_what_it_needs_is_refused_with_every_field_named_at_once() -> None:
    reported = refusals("{}")
    assert [problem.message for problem in reported] == [
        "'name' is missing.",
        "'pluginType' is missing.",
        "'entryPoint' is missing.",
    ]
    assert all((problem.line, problem.column) == (1, 1) and problem.fix for problem in reported)


@pytest.mark.requirement("plugin:required-fields")
@pytest.mark.parametrize(
    "entry", [{}, {"command": ""}, {"command": "  "}, {"command": 5}, "python x.py", [], {"command": "a\0b"}]
)
def test_a_callable_plugin_without_a_command_to_run_is_refused(entry: Any) -> None:
    (problem,) = refusals(json.dumps({**MINIMAL, "entryPoint": entry}))
    assert problem.field == "entryPoint"
    assert '"command"' in problem.fix


@pytest.mark.requirement("plugin:required-fields")
def test_what_only_a_good_manifest_has_is_a_warning_when_it_is_missing() -> None:
    reported = problems()
    assert all(problem.warning for problem in reported)
    assert re.findall(r"'(\w+)' is missing", " ".join(problem.message for problem in reported)) == [
        "displayName",
        "communication",
        "invocationCommands",
    ]


@pytest.mark.requirement("plugin:required-fields")
def test_a_static_plugin_needs_placeholders_instead_of_commands() -> None:
    reported = problems(pluginType="static", displayName="x", communication={})
    assert ["systemPromptPlaceholders" in problem.message for problem in reported] == [True]


@pytest.mark.requirement("plugin:type:unsupported")
@pytest.mark.parametrize("kind", ["messagePreprocessor", "service", "hybridservice"])
def test_a_type_that_runs_inside_vcptoolbox_loads_and_says_why_it_cannot_run(kind: str) -> None:
    manifest = read_valid(pluginType=kind, entryPoint={"script": "x.js"}, communication={"protocol": "direct"})
    assert manifest.type == kind
    assert kind in manifest.unsupported
    assert "Node.js" in manifest.unsupported


@pytest.mark.requirement("plugin:type:unsupported")
def test_a_synchronous_plugin_with_protocol_direct_says_why_it_cannot_run() -> None:
    manifest = read_valid(entryPoint={"script": "x.js"}, communication={"protocol": "direct"})
    assert "direct" in manifest.unsupported
    assert read_valid().unsupported == ""


@pytest.mark.requirement("plugin:required-fields")
@pytest.mark.parametrize(("kind", "fix"), [("syncronous", "synchronous"), ("Static ", ""), (5, "one of")])
def test_an_unknown_type_is_refused_with_the_nearest_known_one(kind: Any, fix: str) -> None:
    if not fix:
        assert read_valid(pluginType=kind).type is PluginType.STATIC
        return
    (problem,) = refusals(json.dumps({**MINIMAL, "pluginType": kind}))
    assert problem.field == "pluginType"
    assert fix in problem.fix


@pytest.mark.requirement("plugin:timeout")
@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({}, 60),
        ({"pluginType": "asynchronous"}, 1800),
        ({"pluginType": "static"}, 60),
        ({"communication": {"timeout": 5000}}, 5),
        ({"communication": {"timeout": "2500"}}, 2.5),
        ({"entryPoint": {"command": "x", "timeout": 300000}}, 300),
        ({"entryPoint": {"command": "x", "timeout": 300000}, "communication": {"timeout": 1000}}, 1),
        ({"communication": {"timeout": None}}, 60),
    ],
)
def test_the_timeout_is_in_ms_wherever_it_stands_and_has_a_default_by_type(fields: Any, seconds: float) -> None:
    assert read_valid(**fields).timeout_s == seconds


@pytest.mark.requirement("plugin:timeout")
@pytest.mark.parametrize("timeout", [0, -1, "soon", True, [], "nan", "1e999", 10**400, 10**12])
def test_a_timeout_that_means_nothing_is_a_warning_and_the_default_holds(timeout: Any) -> None:
    assert read_valid(communication={"timeout": timeout}).timeout_s == 60
    assert "communication.timeout" in [problem.field for problem in problems(communication={"timeout": timeout})]


@pytest.mark.requirement("plugin:extra-fields")
def test_the_extra_fields_are_read() -> None:
    manifest = read_valid(
        risk="network",
        idempotent=True,
        maxConcurrency=4,
        limits={"memoryMb": 512, "cpuSeconds": 30, "openFiles": 64, "processes": 8, "fileSizeMb": 10, "stdoutMb": 1},
        permissions={"project": "read", "network": ["api.example.com"], "confinement": "files"},
        warmStart=False,
        detached=True,
        shell=True,
    )
    assert (manifest.risk, manifest.idempotent, manifest.max_concurrency) == (Risk.NETWORK, True, 4)
    assert manifest.limits == Limits(
        memory_bytes=512 * 2**20,
        cpu_s=30,
        open_files=64,
        processes=8,
        file_bytes=10 * 2**20,
        stdout_bytes=2**20,
    )
    assert (manifest.access, manifest.warm, manifest.detached, manifest.shell) == (
        Access(project=ProjectAccess.READ, network=("api.example.com",), minimum=ConfinementLevel.FILES),
        False,
        True,
        True,
    )
    assert tool_spec(manifest).risk is Risk.NETWORK


@pytest.mark.requirement("plugin:extra-fields", "s:S-84")
def test_translations_show_nothing_hidden_and_never_change_the_texts_of_the_manifest() -> None:
    given = {
        "en": {"displayName": " Tiny\u200b ", "description": "Does little."},
        "zh-Hans": {"description": "做一点事。"},
        "English please": {"description": "no language"},
        "fr": "Bonjour",
    }
    parsed = read_manifest(json.dumps({**MINIMAL, "description": "本来的文字", "translations": given}))
    assert parsed.manifest is not None
    assert parsed.manifest.translations == {
        "en": Translation(display_name="Tiny", description="Does little."),
        "zh-Hans": Translation(description="做一点事。"),
        "fr": Translation(),
    }
    fields = {problem.field for problem in parsed.problems if problem.field.startswith("translations")}
    assert fields == {"translations.en.displayName", "translations.English please", "translations.fr"}
    plain = read_manifest(json.dumps({**MINIMAL, "description": "本来的文字"})).manifest
    assert plain is not None
    assert tool_spec(parsed.manifest).description == tool_spec(plain).description
    assert write_plugin(parsed.manifest) == write_plugin(plain)


@pytest.mark.requirement("plugin:extra-fields", "s:S-84")
def test_commands_and_settings_are_translated_by_name() -> None:
    written = {
        **MINIMAL,
        "capabilities": {"invocationCommands": [{"command": "Do", "description": "做。"}]},
        "configSchema": {"KEY": {"type": "string", "description": "密钥。"}},
    }
    given = {"en": {"commands": {"Do": " Does\u200b it. ", "No": "?"}, "settings": {"KEY": "The key.", "LOCK": "?"}}}
    parsed = read_manifest(json.dumps({**written, "translations": given}))
    assert parsed.manifest is not None
    translation = parsed.manifest.translations["en"]
    assert (translation.commands, translation.settings) == ({"Do": "Does it."}, {"KEY": "The key."})
    fields = {problem.field for problem in parsed.problems if problem.field.startswith("translations")}
    assert fields == {
        "translations.en.commands.Do", "translations.en.commands.No", "translations.en.settings.LOCK",
    }  # fmt: skip


@pytest.mark.requirement("plugin:config:file")
def test_a_setting_can_be_required_unless_another_one_is_set() -> None:
    keys = {"A": {"type": "string", "requiredUnless": ["B", "C"]}, "B": "string", "C": "string"}
    parsed = read_manifest(json.dumps({**MINIMAL, "configSchema": keys}))
    assert parsed.manifest is not None
    first = parsed.manifest.config[0]
    assert [first.is_required(one) for one in ((), ("A",), ("C",), ("B", "C"))] == [True, True, False, False]


@pytest.mark.requirement("plugin:extra-fields", "s:S-84")
def test_the_help_of_parameters_is_translated_by_name_within_bounds_and_changes_no_text_of_its_own() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object", "description": "原文"}, "b": {}, "c": {}}}
    commands = [{"command": name, "description": "做。", "parameters": schema} for name in ("Do", "Undo")]
    written = {**MINIMAL, "capabilities": {"invocationCommands": commands}}
    given = {
        "en": {"parameters": {"a": " The\u200b text. ", "a.x": "Inside.", "b": [], "c": " ", "command": "Which."}},
        "fr": {"parameters": {"d": "?", "A": "?"}},
        "it": {"parameters": "Ciao"},
        "es": {"parameters": {f"a.{number}": "Texto." for number in range(201)}},
    }
    parsed = read_manifest(json.dumps({**written, "translations": given}))
    plain = read_manifest(json.dumps(written))
    assert parsed.manifest is not None
    assert plain.manifest is not None
    texts = {language: one.parameters for language, one in parsed.manifest.translations.items()}
    assert texts.pop("es") == {f"a.{number}": "Texto." for number in range(200)}
    assert texts == {"en": {"a": "The text.", "a.x": "Inside.", "command": "Which."}, "fr": {}, "it": {}}
    fields = {problem.field for problem in parsed.problems if problem.field.startswith("translations")}
    assert fields == {
        *(f"translations.en.parameters.{name}" for name in "ab"),
        *(f"translations.fr.parameters.{name}" for name in "dA"),
        *(f"translations.{language}.parameters" for language in ("it", "es")),
    }
    assert repr(tool_spec(parsed.manifest)) == repr(tool_spec(plain.manifest))
    assert write_plugin(parsed.manifest) == write_plugin(plain.manifest)


@pytest.mark.requirement("plugin:extra-fields")
def test_without_the_extra_fields_the_careful_defaults_hold() -> None:
    manifest = read_valid()
    assert (manifest.risk, manifest.idempotent, manifest.max_concurrency) == (Risk.EXECUTE, False, None)
    assert (manifest.limits, manifest.access) == (Limits(), None)
    assert (manifest.warm, manifest.detached, manifest.shell) == (True, False, False)


@pytest.mark.requirement("plugin:extra-fields")
@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"limits": {"memoryMb": "lots"}}, "limits.memoryMb"),
        ({"limits": {"memoryMB": 5}}, "limits.memoryMB"),
        ({"limits": {"processes": 0}}, "limits.processes"),
        ({"limits": {"cpuSeconds": 1.5}}, "limits.cpuSeconds"),
        ({"limits": [1]}, "limits"),
        ({"risk": "raed"}, "risk"),
        ({"shell": "maybe"}, "shell"),
        ({"maxConcurrency": 0}, "maxConcurrency"),
        ({"permissions": 5}, "permissions"),
        ({"permissions": {"project": "all"}}, "permissions.project"),
        ({"permissions": {"network": "none"}}, "permissions.network"),
        ({"permissions": {"network": ["https://api.example.com/"]}}, "permissions.network"),
        ({"permissions": {"netwrok": []}}, "permissions.netwrok"),
        ({"permissions": {"write": ["../outside"]}}, "permissions.write"),
        ({"permissions": {"read": ["~/notes"]}}, "permissions.read"),
        ({"permissions": {"confinement": "some"}}, "permissions.confinement"),
        ({"permissions": {"unixSockets": "yes"}}, "permissions.unixSockets"),
        ({"idempotent": "perhaps"}, "idempotent"),
    ],
)
def test_a_field_that_protects_is_never_guessed(fields: Any, field: str) -> None:
    assert [problem.field for problem in refusals(json.dumps({**MINIMAL, **fields}))] == [field]


@pytest.mark.requirement("plugin:extra-fields")
def test_the_list_of_permissions_of_old_manifests_is_no_fault() -> None:
    assert read_valid(permissions=["read_from_file_system"]).access is None


@pytest.mark.requirement("plugin:seed-manifests")
@pytest.mark.parametrize(
    ("schema", "keys"),
    [
        ({"K": "string"}, [("K", "string", None, "", False)]),
        ({"K": "Integer", "B": "bool", "F": "float"}, [("K", "integer"), ("B", "boolean"), ("F", "number")]),
        ({"K": "string(可选)，代理地址"}, [("K", "string", None, "代理地址", False)]),
        ({"K": "string (必需), the key"}, [("K", "string", None, "the key", True)]),
        (
            {"K": {"type": "number", "default": 1.5, "description": "d", "required": True}},
            [("K", "number", 1.5, "d", True)],
        ),
        ({"K": {"type": ["integer", "null"]}}, [("K", "integer")]),
        ({"K": {"default": "x"}}, [("K", "string", "x")]),
        ([{"key": "K", "type": "string", "description": "d", "defaultValue": ""}], [("K", "string", "", "d", False)]),
        ([{"name": "K", "type": "int"}, "L"], [("K", "integer"), ("L", "string")]),
        ({"type": "object", "properties": {"K": {"type": "integer"}}}, [("K", "integer")]),
        (
            {"type": "object", "properties": {"K": {"type": "string"}, "L": {}}, "required": ["K", 5]},
            [("K", "string", None, "", True), ("L", "string", None, "", False)],
        ),
        ({"required": {"type": "string"}}, [("required", "string", None, "", False)]),
        ({"K": {"type": "array"}}, [("K", "string")]),
        (None, []),
    ],
)
def test_every_form_of_config_schema_is_read(schema: Any, keys: list[tuple[Any, ...]]) -> None:
    config = read_valid(configSchema=schema).config
    named = [(key.name, key.type, key.default, key.description, key.required) for key in config]
    assert [full[: len(short)] for full, short in zip(named, keys, strict=True)] == keys


@pytest.mark.requirement("plugin:unknown-fields")
@pytest.mark.parametrize(
    "schema", [{"K": "sting"}, {"K": 5}, {"": "string"}, {"A=B": "string"}, [{"type": "string"}], "x", [5]]
)
def test_an_odd_setting_is_a_warning_with_its_place(schema: Any) -> None:
    reported = [problem for problem in problems(configSchema=schema) if problem.field.startswith("configSchema")]
    assert [problem.warning for problem in reported] == [True]
    assert all(len(key.name) for key in read_valid(configSchema=schema).config)


@pytest.mark.requirement("plugin:seed-manifests")
def test_placeholders_lose_their_braces_and_the_cron_is_kept_as_written() -> None:
    listed = [{"placeholder": "{{VCPWeather}}"}, {"placeholder": "VCPTime"}, "{{ VCPDate }}", {"placeholder": "{{}}"}]
    manifest = read_valid(
        pluginType="static",
        capabilities={"systemPromptPlaceholders": listed},
        refreshIntervalCron="*/15 * * * * *",
    )
    assert manifest.placeholders == ("VCPWeather", "VCPTime", "VCPDate")
    assert manifest.refresh_cron == "*/15 * * * * *"
    assert read_valid().refresh_cron is None


@pytest.mark.requirement("plugin:commands")
def test_a_command_is_named_by_command_or_else_by_command_identifier() -> None:
    manifest = manifest_with(
        {"command": "A", "commandIdentifier": "B", "description": "a"},
        {"commandIdentifier": "C", "description": "c"},
        {"description": "d", "example": {"a": 1}},
    )
    assert [command.name for command in manifest.commands] == ["A", "C", ""]
    assert manifest.commands[2].example == '{\n  "a": 1\n}'


@pytest.mark.requirement("plugin:commands")
def test_what_is_no_command_or_there_twice_is_a_warning() -> None:
    listed = [{"command": "A", "description": "a"}, 5, {"command": "A", "description": "a"}, {"command": "B"}]
    reported = problems(displayName="x", communication={}, capabilities={"invocationCommands": listed})
    assert [(problem.field.rpartition("[")[2], problem.warning) for problem in reported] == [
        ("1]", True),
        ("2]", True),
        ("3]", True),
    ]


# --- mistakes and their places


@pytest.mark.requirement("plugin:required-fields")
def test_every_problem_has_the_line_and_column_of_its_field_and_they_come_in_order() -> None:
    text = """{
  "name": "bad name",
  "pluginType": "synchronous",
  "entryPoint": {"command": "x"},
  "limits": {
    "memoryMb": 1,
      "processes": "many"
  },
  "capabilities": {"invocationCommands": [{"description": "ok"}, {"description": "回声", "parameters": 5}]}
}"""
    parsed = read_manifest(text)
    assert parsed.manifest is None
    places = [(p.field, p.line, p.column) for p in parsed.problems if p.line > 1]
    assert places == [
        ("name", 2, 3),
        ("limits.processes", 7, 7),
        ("capabilities.invocationCommands[1].parameters", 9, text.split("\n")[8].index('"parameters"') + 1),
    ]
    assert all(problem.fix for problem in parsed.problems)


@pytest.mark.requirement("plugin:required-fields")
@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("", 1, 1, "empty"),
        (" \n ", 1, 1, "empty"),
        ('\ufeff{"name": "x"}', 1, 1, "byte order mark"),
        ('{\n  "name": "x", # mine\n}', 2, 16, "comment"),
        ('{\n  /* mine */ "name": "x",}', 2, 25, "comma after the last"),
        ('{ // mine\n  "a": 1,\n /* "b" */ "a": 2}', 3, 12, "twice"),
        ('{"name": "x",\n}', 1, 13, "comma after the last"),
        ('{"a": [1, 2,\n ]}', 1, 12, "comma after the last"),
        ("{'name': 'x'}", 1, 2, "quotes"),
        ('{"name": “x”}', 1, 10, "quotes"),
        ('{"name": "x"', 1, 13, "ends before"),
        ('{"name": "x"} {}', 1, 15, "not JSON"),
        ('```json\n{"name": "x"}\n```', 1, 1, "Markdown"),
        ("[]", 1, 1, "not a JSON object"),
        ('{"a": NaN}', 1, 2, "NaN".lower()),
        ('{"a": "\\ud800"}', 1, 2, "surrogate"),
        ('{"a":1,\n"b": {"c": 1,\n "c": 2}}', 3, 2, "twice"),
        ('{"name":"x",\n "name":"y"}', 2, 2, "twice"),
        ("[" * 100_000, 1, 1, "nested"),
        ('{"a":' + "[" * 60 + "]" * 60 + "}", 1, 2, "deeper than 50"),
        ('{"a":' + "9" * 5000 + "}", 1, 1, "cannot be read"),
        (" " * (2**20 + 1), 1, 1, "larger than"),
    ],
)
def test_a_text_that_is_no_json_is_refused_in_plain_words_at_the_place(
    text: str, line: int, column: int, words: str
) -> None:
    (problem,) = refusals(text)
    assert words in problem.message
    assert (problem.line, problem.column) == (line, column)
    assert problem.fix


@pytest.mark.requirement("plugin:detached")
def test_how_long_work_may_go_on_after_the_answer() -> None:
    assert (read_valid().detached_timeout_s, read_valid(detachedTimeout=5000).detached_timeout_s) == (1800.0, 5.0)
    assert read_valid(detachedTimeout="7200000").detached_timeout_s == 7200.0
    for wrong in (0, -1, "soon", True, 24 * 3600 * 1000 + 1):
        (problem,) = refusals(json.dumps({**MINIMAL, "detachedTimeout": wrong}))
        assert problem.field == "detachedTimeout"


@pytest.mark.requirement("plugin:manifest-comments")
def test_the_manifest_of_the_seed_loads_with_the_comments_that_it_is_printed_with() -> None:
    """001 §5.2."""
    parsed = read_manifest(VIDEO_WITH_COMMENTS)
    assert parsed.manifest is not None
    assert (parsed.manifest.name, parsed.manifest.timeout_s) == ("Wan2.1VideoGen", 1800.0)
    assert [command.name for command in parsed.manifest.commands] == ["submit", "query"]
    assert parsed.manifest.push is not None
    (remark,) = [problem for problem in parsed.problems if "comment" in problem.message]
    line = VIDEO_WITH_COMMENTS.splitlines()[3]
    assert (remark.warning, remark.line, remark.column) == (True, 4, line.index("//") + 1)
    assert "VCPToolBox refuses" in remark.message


@pytest.mark.requirement("plugin:manifest-comments")
def test_slashes_in_texts_are_no_comments_and_places_are_those_of_the_file() -> None:
    text = '{ // one "\n  "name": "X", /* two\n  // " */ "pluginType": "synchronous",\n'
    text += (
        '  "description": "see https://a.b/c \\" // not /* this */",\n  "entryPoint": {"command": "x"}, "limits": 5 }'
    )
    parsed = read_manifest(text)
    assert [(p.field, p.line, p.column) for p in parsed.problems if not p.warning] == [("limits", 5, 35)]
    good = read_manifest(text.replace('"limits": 5', '"a": 1')).manifest
    assert good is not None
    assert good.description == 'see https://a.b/c " // not /* this */'
    assert read_manifest(json.dumps({**MINIMAL, "description": "https://a.b /* c */"})).problems == tuple(
        read_manifest(json.dumps({**MINIMAL, "description": "d"})).problems
    )


@pytest.mark.requirement("plugin:commands")
def test_more_than_two_hundred_commands_are_refused() -> None:
    one = {"command": "A", "description": "a"}
    (problem,) = refusals(json.dumps({**MINIMAL, "capabilities": {"invocationCommands": [one] * 201}}))
    assert problem.field == "capabilities.invocationCommands"


_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=20)
    | st.sampled_from(["stdio", "string", "- a (必需): b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_names = [
    *ECHO,
    "limits",
    "risk",
    "permissions",
    "webSocketPush",
    "shell",
    "refreshIntervalCron",
    "configSchemaDescriptions",
]


@pytest.mark.requirement("plugin:required-fields", "plugin:unknown-fields")
@given(st.dictionaries(st.sampled_from(_names), _values, max_size=4), st.lists(_values, max_size=2))
def test_whatever_the_fields_hold_reading_ends_in_a_manifest_or_in_reasons(
    odd: dict[str, Any], commands: list[Any]
) -> None:
    text = json.dumps({**ECHO, "capabilities": {"invocationCommands": commands}, **odd})
    parsed = read_manifest(text)
    assert (parsed.manifest is None) == any(not problem.warning for problem in parsed.problems)
    if parsed.manifest:
        assert parsed.manifest.fields == json.loads(text)
        assert tool_spec(parsed.manifest).name == json.loads(text)["name"]
        write_plugin(parsed.manifest)


@pytest.mark.requirement("plugin:required-fields")
@given(st.text(max_size=60))
def test_whatever_the_text_reading_never_raises(text: str) -> None:
    assert read_manifest(text).problems


@pytest.mark.requirement("plugin:required-fields")
@pytest.mark.parametrize(
    "description",
    [
        "- a " + " " * 19_000,
        "a/" * 9_000,
        "「始」" * 6_000,
        "#" * 19_000,
        "- a(" * 4_000,
        "\n" * 19_000,
        "必需参数: " * 2000,
    ],
)
def test_hostile_descriptions_take_no_longer_than_others(description: str) -> None:
    manifest = manifest_with(*[{"description": description}] * 8)
    assert len(manifest.commands) == 8


# --- parameters


@pytest.mark.requirement("plugin:extra-fields", "plugin:commands")
def test_a_declared_schema_is_taken_as_it_is() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
    command = manifest_with({"description": "- other (string, required): x", "parameters": schema}).commands[0]
    assert (command.parameters, command.derived) == (schema, False)


@pytest.mark.requirement("plugin:extra-fields")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"n": {"type": "integre"}}},
        {"type": "array", "properties": {}},
        {"properties": []},
        {"properties": {"n": {"$ref": "http://127.0.0.1:9/schema.json"}}},
        {"properties": {"n": {"$ref": "file:///etc/passwd"}}},
        {"$schema": "http://127.0.0.1:9/meta.json", "properties": {}},
        {"$id": "http://127.0.0.1:9/", "properties": {"n": {"$ref": "other.json"}}},
        {"properties": {"n": {"$ref": "#/$defs/missing"}}},
        "none",
        [{"type": "string"}],
    ],
)
def test_a_schema_that_cannot_be_used_is_a_warning_and_nothing_is_fetched(schema: Any) -> None:
    listed = {"invocationCommands": [{"description": "Does it.", "parameters": schema}]}
    (problem,) = problems(displayName="x", communication={}, capabilities=listed)
    assert problem.field == "capabilities.invocationCommands[0].parameters"
    assert problem.warning
    assert read_valid(capabilities=listed).commands[0].parameters is None


@pytest.mark.requirement("plugin:seed-manifests")
@pytest.mark.parametrize(
    "listed",
    [
        [
            {"name": "folder", "description": "Where.", "required": True, "type": "string"},
            {"name": "k", "type": "number", "required": False},
        ],
        {"folder": {"type": "string", "description": "Where.", "required": True}, "k": {"type": "number"}},
    ],
)
def test_parameters_listed_in_the_old_way_are_read_as_derived(listed: Any) -> None:
    command = manifest_with({"description": "x", "parameters": listed}).commands[0]
    assert command.derived
    assert command.parameters == {
        "type": "object",
        "properties": {"folder": {"type": "string", "description": "Where."}, "k": {"type": ["number", "string"]}},
        "required": ["folder"],
        "additionalProperties": True,
    }


@pytest.mark.requirement("plugin:commands")
@pytest.mark.parametrize(
    ("description", "properties", "required"),
    [
        ("- text (字符串, 必需): 内容", {"text": "string"}, ["text"]),
        ("- filePath (string, required): the file", {"filePath": "string"}, ["filePath"]),
        ("* `limit` (integer, optional, default 5): how many", {"limit": ["integer", "string"]}, []),
        ("- showHidden (布尔值, 可选, 默认false): 是否显示", {"showHidden": ["boolean", "string"]}, []),
        ("参数:\n1. prompt(必需)\n2. size（可选）：尺寸", {"prompt": None, "size": None}, ["prompt"]),
        ("- prompt（必需）：描述", {"prompt": None}, ["prompt"]),
        ("- watermark: (可选) 是否添加水印", {"watermark": None}, []),
        ("- body: 必填，正文", {"body": None}, ["body"]),
        ("- `keys`: 必填，可传 `Enter` 等。", {"keys": None}, ["keys"]),
        ("- `origin` (可选, 字符串): 视角", {"origin": "string"}, []),
        ("- cc/bcc: 可选，抄送", {"cc": None, "bcc": None}, []),
        ("- from / startTime (字符串, 必需): 时间", {"from": "string", "startTime": "string"}, []),
        ("- rerank (布尔/数字/字符串, 可选): x", {"rerank": ["boolean", "number", "string"]}, []),
        ("- ids (字符串或JSON数组, 必需): x", {"ids": ["string", "array"]}, ["ids"]),
        (
            "1. mode:「始」[模式]「末」 (必需, 字符串)\n2. seed:「始」[种子]「末」 (可选)",
            {"mode": "string", "seed": None},
            ["mode"],
        ),
        ("必需参数: post_id(帖子ID), content(回复)。", {"post_id": None, "content": None}, ["post_id", "content"]),
        (
            "Reads. Required fields: `id`, `goal`. Optional fields: `mode`.",
            dict.fromkeys(["id", "goal", "mode"]),
            ["id", "goal"],
        ),
        ("Parameters:\n- width: in pixels\n- height: in pixels", {"width": None, "height": None}, []),
        ("Parameters:\n- a (string, required): x\nReturns:\n- b (string): y", {"a": "string"}, ["a"]),
        ("参数：\n- q (字符串, 必需): 与 id 二选一", {"q": "string"}, []),
        ("- url (string, required when mode is web): x", {"url": "string"}, []),
        ("- url (字符串, 当 mode=web 时必需): x", {"url": "string"}, []),
        ("- a (string, required): x\n- a (string, optional): in the other mode", {"a": "string"}, []),
        ("文生图参数:\n- prompt (必需): x\n改图参数:\n- image (必需): y", {"prompt": None, "image": None}, []),
        ("- 支持的命令: ReadFile, WriteFile\n- list: shows all", {}, []),
        ("Note: this is slow.\nUse it with care (required reading: the manual).", {}, []),
        ("参数: 无", {}, []),
    ],
)
def test_parameters_are_read_from_what_the_description_plainly_says(
    description: str, properties: dict[str, Any], required: list[str]
) -> None:
    schema = derive_parameters(description)
    types = {name: inner.get("type") for name, inner in schema.get("properties", {}).items()}
    assert types == properties
    assert schema.get("required", []) == required
    assert schema.get("additionalProperties", True) is True


@pytest.mark.requirement("plugin:commands")
def test_the_keys_of_a_request_block_are_parameters_without_the_special_ones() -> None:
    example = (
        "<<<[TOOL_REQUEST]>>>\nmaid:「始」Nova「末」,\ntool_name:「始」Tiny「末」,\ncity:「始」Paris「末」,\n"
        "days:「始ESCAPE」3「末ESCAPE」,\ntimely_contact:「始」2030-01-01-10:00「末」\n<<<[END_TOOL_REQUEST]>>>"
    )
    assert derive_parameters("Weather.", example) == {
        "type": "object",
        "properties": {"city": {}, "days": {}},
        "additionalProperties": True,
    }
    assert set(derive_parameters(f"Weather.\n```\n{example}\n```")["properties"]) == {"city", "days"}


@pytest.mark.requirement("plugin:commands")
def test_a_block_that_explains_its_fields_gives_needs_and_descriptions() -> None:
    block = (
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」Tiny「末」,\n"
        "prompt:「始」(必需) 提示词「末」,\nseed:「始」（可选）种子「末」\n<<<[END_TOOL_REQUEST]>>>"
    )
    schema = derive_parameters(block)
    assert schema["properties"] == {"prompt": {"description": "提示词"}, "seed": {"description": "种子"}}
    assert schema["required"] == ["prompt"]


@pytest.mark.requirement("plugin:commands")
def test_what_an_example_does_without_is_not_required() -> None:
    example = "<<<[TOOL_REQUEST]>>>\ntool_name:「始」Tiny「末」,\nurl:「始」x「末」\n<<<[END_TOOL_REQUEST]>>>"
    schema = derive_parameters("- url (string, required): x\n- depth (integer, required): y", example)
    assert schema["required"] == ["url"]


@pytest.mark.requirement("plugin:commands")
def test_numbered_keys_of_a_batch_are_no_parameters() -> None:
    batch = (
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」Tiny「末」,\ncommand1:「始」A「末」,\npath1:「始」x「末」,\n"
        "command2:「始」B「末」,\npath2:「始」y「末」\n<<<[END_TOOL_REQUEST]>>>"
    )
    assert set(derive_parameters(f"- path (string, required): x\n{batch}")["properties"]) == {"path"}
    assert derive_parameters(f"- path (string, required): x\n{batch}")["required"] == ["path"]


# --- as a tool


@pytest.mark.requirement("plugin:name", "plugin:timeout", "plugin:commands")
def test_a_plugin_is_one_tool_that_gets_its_arguments_as_written() -> None:
    spec = tool_spec(read_valid(**ECHO))
    assert (spec.name, spec.timeout_s, spec.risk, spec.verbatim) == ("EchoPlugin", 5.0, Risk.EXECUTE, True)
    assert spec.parameter_names == ("text",)
    assert spec.parameters["additionalProperties"] is True
    assert spec.description.startswith("一个简单的插件")
    assert ECHO_DESCRIPTION in spec.description


@pytest.mark.requirement("plugin:commands")
def test_the_schema_of_several_commands_is_what_they_agree_on() -> None:
    def schema(**properties: Any) -> dict[str, Any]:
        return {"type": "object", "properties": properties, "$defs": {"P": {"type": "string"}}}

    manifest = manifest_with(
        {
            "command": "A",
            "description": "a",
            "parameters": schema(n={"type": "integer", "minimum": 1}, p={"$ref": "#/$defs/P"}),
        },
        {
            "command": "B",
            "description": "b",
            "parameters": schema(n={"type": "integer", "maximum": 9}, q={"type": "string"}),
        },
    )
    spec = tool_spec(manifest)
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "One of: A, B.", "enum": ["A", "B"]},
            "n": {"type": "integer"},
            "p": {},
            "q": {"type": "string"},
        },
        "required": ["command"],
        "additionalProperties": True,
    }
    assert "Command A:\na\n\nCommand B:\nb" in spec.description


DECLARED = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


@pytest.mark.requirement("plugin:commands")
def test_the_arguments_tell_which_command_is_checked() -> None:
    manifest = manifest_with(
        {"command": "Add", "description": "a", "parameters": DECLARED}, {"command": "List", "description": "b"}
    )
    spec = command_spec(manifest, {"command": "Add", "n": "5", "maid": "Nova"})
    assert spec is not None
    assert spec.parameters["required"] == ["n"]
    assert set(spec.parameter_names) == {"n", "command", "maid", "valet"}
    loosely = command_spec(manifest, {"Command": " add "})
    assert loosely is not None
    assert asdict(loosely) == asdict(spec)
    assert command_spec(manifest, {"command": "List"}) is None
    assert command_spec(manifest, {"command": "Drop", "n": 1}) is None
    assert command_spec(manifest, {}) is None


@pytest.mark.requirement("plugin:commands")
def test_a_numbered_batch_is_left_to_the_plugin() -> None:
    one = manifest_with({"description": "a", "parameters": DECLARED})
    assert command_spec(one, {"n": 1}) is not None
    assert command_spec(one, {"n1": 1, "n2": 2}) is None
    assert command_spec(one, {"command1": "x", "n1": 1}) is None
    assert command_spec(one, {"n2": 2}) is None


@pytest.mark.requirement("plugin:commands")
def test_derived_parameters_check_no_call_that_has_names_they_do_not_know() -> None:
    manifest = manifest_with({"description": "- prompt (string, required): x\n- resolution (string, required): y"})
    assert command_spec(manifest, {"prompt": "cat"}) is not None
    assert command_spec(manifest, {"Prompt": "cat", "resolution": "1x1", "maid": "Nova"}) is not None
    assert command_spec(manifest, {"prompt": "cat", "size": "1x1"}) is None


@pytest.mark.requirement("plugin:commands")
def test_a_derived_type_never_refuses_the_text_of_a_request_block() -> None:
    schema = derive_parameters("- n (integer, required): x\n- on (boolean, required): y\n- list (array, optional): z")
    for inner in schema["properties"].values():
        assert "string" in inner["type"]
        assert coerce_value("5", inner) == "5"


# --- what models read


@pytest.mark.requirement("placeholder:plugin-text", "plugin:commands")
def test_the_text_of_a_plugin_is_laid_out_as_vcptoolbox_does() -> None:
    manifest = manifest_with(
        {"command": "A", "description": "First.\nSecond.", "example": "one\n two"},
        {"commandIdentifier": "B", "description": "Only this."},
        {"description": "No name."},
        {"command": "Silent"},
        displayName="小工具",
    )
    assert write_plugin(manifest) == (
        "- 小工具 (Tiny) - 命令: A:\n    First.\n    Second.\n  调用示例:\n    one\n     two\n\n"
        "- 小工具 (Tiny) - 命令: B:\n    Only this.\n\n"
        "- 小工具 (Tiny) - 命令: N/A:\n    No name."
    )
    assert write_plugin(read_valid()) == ""


@pytest.mark.requirement("s:S-84")
@pytest.mark.parametrize(
    "hidden",
    [
        "\u200b",
        "\u200d",
        "\u202e",
        "\u2066",
        "\ufeff",
        "\u00ad",
        "\x00",
        "\x1b[8m"[:1],
        "\U000e0041",
        "\u3164",
        "\U000e0101",
        "\ue000",
    ],
)
def test_hidden_characters_never_reach_a_model_and_are_told(hidden: str) -> None:
    texts = {"description": f"Read{hidden} it.", "example": f"a{hidden}b"}
    fields: dict[str, Any] = {"description": f"Plug{hidden}in", "displayName": f"T{hidden}T", "communication": {}}
    manifest = manifest_with(texts, **fields)
    text = write_plugin(manifest) + tool_spec(manifest).description
    assert hidden not in text
    assert "Read it." in text
    assert manifest.fields["description"] == f"Plug{hidden}in"
    reported = problems(**fields, capabilities={"invocationCommands": [texts]})
    assert [problem.field for problem in reported] == [
        "description",
        "displayName",
        "capabilities.invocationCommands[0].description",
        "capabilities.invocationCommands[0].example",
    ]
    assert all("hidden characters" in problem.message for problem in reported)


@pytest.mark.requirement("s:S-84")
def test_ordinary_text_with_line_breaks_emoji_and_tabs_is_not_touched() -> None:
    text = "第一行\n\tsecond ☺️ line — «x»"
    manifest = manifest_with({"description": text}, displayName="x", communication={})
    assert manifest.commands[0].description == text
    assert manifest_with({"description": "a\r\nb"}).commands[0].description == "a\nb"
    reported = problems(
        displayName="x", communication={}, capabilities={"invocationCommands": [{"description": "a\r\nb"}]}
    )
    assert reported == []


@pytest.mark.requirement("s:S-84")
def test_what_a_model_reads_of_one_plugin_is_bounded_and_says_that_it_was_cut() -> None:
    manifest = manifest_with(*[{"command": f"C{n}", "description": "x" * 30_000} for n in range(20)])
    assert len(manifest.commands[0].description) < 20_100
    assert len(tool_spec(manifest).description) < 20_100
    assert "[cut: 30000 characters in all]" in manifest.commands[0].description
    reported = problems(capabilities={"invocationCommands": [{"description": "x" * 30_000}]})
    assert "30000 characters" in " ".join(problem.message for problem in reported)


# --- documentation


@pytest.mark.requirement("plugin:documented")
def test_every_field_that_is_read_has_a_row_in_the_documentation() -> None:
    page = (ROOT / "docs/manifest.md").read_text("utf-8")
    rows = set(re.findall(r"^\| `([^`]+)`", page, re.MULTILINE))
    documented = {name for row in rows for name in re.split(r"[.\[\]]+", row)}
    readers = {"text", "flag", "number", "inside", "each", "get", "_whole"}
    read_names = {
        argument.value
        for file in (ROOT / "src/toolyard/protocol/manifests").glob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and (getattr(node.func, "attr", "") in readers or getattr(node.func, "id", "") in readers)
        for argument in node.args[:2]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }
    words_of_schemas = {"properties", "stdio", "string", "object"}
    no_text = {""}  # a default
    assert len(read_names) > 30
    assert read_names - documented - words_of_schemas - no_text == set()


@pytest.mark.requirement("s:S-84")
def test_nothing_hidden_in_a_declared_schema_reaches_the_model() -> None:
    schema = {"type": "object", "properties": {"description": {"type": "string", "description": "a\u200bb\u202ec"}}}
    commands = [{"command": "Go", "description": "x", "parameters": schema}]
    parsed = read_manifest(json.dumps({**ECHO, "capabilities": {"invocationCommands": commands}}))
    assert parsed.manifest is not None
    declared = parsed.manifest.commands[0].parameters
    assert declared is not None
    assert declared["properties"] == {"description": {"type": "string", "description": "abc"}}


@pytest.mark.requirement("plugin:messages")
@pytest.mark.parametrize("kind", ["synchronos", "servic", "hybrid", "preprocessor", "x", None])
def test_types_that_cannot_run_are_never_offered(kind: str | None) -> None:
    manifest = {**MINIMAL, "pluginType": kind}
    (problem,) = refusals(json.dumps(manifest))
    assert problem.fix in ("Did you mean synchronous?", "Did you mean static?") or problem.fix.endswith(
        "one of synchronous, asynchronous, static."
    )


@pytest.mark.requirement("plugin:messages")
def test_a_misspelt_key_that_nothing_works_without_is_named_at_its_place() -> None:
    text = '{"name": "Tiny",\n "pluginTyp": "synchronous",\n "entrypoint": {"command": "python tiny.py"}}'
    assert [(problem.line, problem.message, problem.fix) for problem in refusals(text)] == [
        (2, "'pluginType' is missing, and 'pluginTyp' is not known.", "Did you mean 'pluginType'? Write it instead."),
        (3, "'entryPoint' is missing, and 'entrypoint' is not known.", "Did you mean 'entryPoint'? Write it instead."),
    ]
    text = '{"name": "Tiny", "pluginType": "synchronous",\n "entryPoint": {\n  "comand": "python tiny.py"}}'
    (problem,) = refusals(text)
    assert (problem.line, problem.message) == (3, "'entryPoint.command' is missing, and 'comand' is not known.")


@pytest.mark.requirement("plugin:messages")
def test_other_misspelt_keys_are_warned_of_and_keys_of_others_are_not() -> None:
    reported = problems(
        discription="x",
        comunication={},
        capabilities={"invocationCommands": [{"command": "Go", "descripton": "Goes.", "exmaple": ""}]},
        isDistributed=True,
        hasApiRoutes=True,
        category="tools",
        license="MIT",
    )
    fields = {problem.field: problem.fix for problem in reported if "is not known" in problem.message}
    inside = "capabilities.invocationCommands[0]"
    assert fields == {
        "discription": "Did you mean 'description'?",
        "comunication": "Did you mean 'communication'?",
        f"{inside}.descripton": "Did you mean 'description'?",
        f"{inside}.exmaple": "Did you mean 'example'?",
    }
