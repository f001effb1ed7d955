"""The prompts of an installation of VCPToolBox, filled without any of its code."""

from pathlib import Path
from typing import Any

import pytest

from tests.vcp.prompts import ME, NOW, Tree, fill_messages, fill_system, make_prompts
from toolyard.gateway.chat_ports import PromptRequest
from toolyard.gateway.faults import ChatFailed
from toolyard.protocol.json import Json
from toolyard.protocol.records.task_record import Task, TaskState
from toolyard.vcp.dynamic_tools import ListedTool
from toolyard.vcp.prompts import Stage

pytestmark = pytest.mark.requirement("vcp:prompts")
FOLDED = "always\n[===vcp_fold: 0.5 ::desc: files===]\nfile tools\n[===vcp_fold: 0.2===]\nmore"


async def test_an_agent_is_shown_once_in_a_request_and_brings_all_that_it_names(tmp_path: Path) -> None:
    tree = Tree(
        root=tmp_path,
        agents={"Nova": "I am Nova. {{TarRules}} {{小克}}", "小克": "I am Ke."},
        texts={"rules.txt": "It is {{Date}}, {{VarCity}}.\n"},
        settings="VarCity='Paris'\nTarRules=rules.txt\n",
    ).write()
    assert await fill_system(tree, "{{agent:Nova}} {{Nova}}") == " ".join(
        2 * ["I am Nova. It is 2026/11/15, Paris. I am Ke."]
    )
    twice: list[Json] = [{"role": "system", "content": text} for text in ("{{Nova}}", "a {{Nova}} {{小克}} b")]
    assert [one["content"] for one in await fill_messages(tree, twice)][1] == "a   b"


async def test_agents_and_files_that_contain_themselves_end(tmp_path: Path) -> None:
    tree = Tree(
        root=tmp_path,
        agents={"A": "a {{B}}", "B": "b {{A}}"},
        texts={"one.txt": "one {{TarTwo}}", "two.txt": "two {{TarOne}}"},
        settings="TarOne=one.txt\nTarTwo=two.txt\n",
    ).write()
    assert await fill_system(tree, "{{A}}") == "a b [Error: Circular agent reference detected for 'A']"
    assert await fill_system(tree, "{{TarOne}}") == "one two {{TarOne}}"


@pytest.mark.requirement("placeholder:budget")
async def test_prompts_that_explode_are_refused(tmp_path: Path) -> None:
    doubling = {f"{number}.txt": f"{{{{Tar{number + 1}}}}}" * 2 for number in range(40)}
    wide = {f"w{number}.txt": "".join(f"{{{{Tarw{one}}}}}" for one in range(number + 1, 40)) for number in range(40)}
    settings = "".join(f"Tar{name.removesuffix('.txt')}={name}\n" for name in (*doubling, *wide))
    tree = Tree(root=tmp_path, texts=doubling | wide | {"40.txt": "x" * 100}, settings=settings + "Tar40=40.txt\n")
    for text in ("{{Tar0}}", "{{Tarw0}}", "{{Tar30}}" * 100):
        with pytest.raises(ChatFailed, match="longer by more than"):
            await fill_system(tree.write(), text)


async def test_what_a_role_may_use_is_as_in_vcptoolbox(tmp_path: Path) -> None:
    tree = Tree(
        root=tmp_path,
        agents={"Nova": "I am Nova."},
        toolboxes={"Box": "tools"},
        model_prompts=[{"promptKey": "SarPrompt1", "models": ["m"], "content": "for m"}],
        settings="VarX=value\n",
        results={"P-1": '{"message": "done"}'},
    ).write()
    text = "{{Nova}} {{Box}} {{SarPrompt1}} {{VarX}} {{VCP_ASYNC_RESULT::P::1}}"
    heads = ("system ", "user ", "assistant ", "user [系统提示:]", "user [系统通知]")
    filled = [
        (await fill_messages(tree, [{"role": role, "content": head + text}]))[0]["content"]
        for role, head in (one.split(" ", 1) for one in heads)
    ]
    assert filled == [
        "I am Nova. tools for m value done",
        "{{Nova}} {{Box}} {{SarPrompt1}} {{VarX}} done",
        "{{Nova}} {{Box}} {{SarPrompt1}} {{VarX}} done",
        "[系统提示:]I am Nova. tools for m {{VarX}} done",
        "[系统通知]{{Nova}} {{Box}} for m {{VarX}} done",
    ]


async def test_a_variable_in_the_value_of_another_is_filled_if_it_comes_later(tmp_path: Path) -> None:
    tree = Tree(root=tmp_path, settings="VarB='b {{VarA}}'\nVarA='a {{VarB}}'\nVarNone=\nVarGone=gone.txt\n").write()
    assert await fill_system(tree, "{{VarA}}; {{VarB}}") == "a {{VarB}}; b a {{VarB}}"
    assert await fill_system(tree, "{{VarNone}} {{VarGone}} {{Nobody}}") == (
        "[未配置 VarNone] [变量文件 (gone.txt) 未找到] {{Nobody}}"
    )


async def test_prompts_of_a_model_are_for_it_alone(tmp_path: Path) -> None:
    tree = Tree(root=tmp_path, settings="SarPrompt1=first\nSarModel1='GPT-x, other'\nSarPrompt2=second\nSarModel2=m\n")
    tree.write()
    text = "{{SarPrompt1}}|{{SarPrompt2}}|{{SarPrompt3}}|{{SarPromptAll}}"
    assert await fill_system(tmp_path, text, "gpt-x") == "first|||first"
    (tmp_path / "sarprompt.json").write_text(
        '[{"promptKey": "SarPrompt1", "models": ["pt-"], "matchMode": "includes", "content": "file.txt"}]'
    )
    (tmp_path / "TVStxt").mkdir()
    (tmp_path / "TVStxt/file.txt").write_text("It is {{Today}}.")
    assert await fill_system(tmp_path, text, "gpt-x") == "It is 星期日.|||It is 星期日."
    assert not (await fill_system(tmp_path, text, "m")).strip("|")


async def test_the_clock_is_in_the_zone_of_reports_with_the_chinese_calendar(tmp_path: Path) -> None:
    text = "{{Date}} {{Time}} {{Today}} {{Festival}}"
    tree = Tree(root=tmp_path, settings="DEFAULT_TIMEZONE=America/New_York\n").write()
    assert await fill_system(tree, text) == "2026/11/14 20:50:28 星期六 丙午马年十月初六"
    Tree(root=tmp_path, settings="REPORT_TIMEZONE=Asia/Tokyo\nDEFAULT_TIMEZONE=America/New_York\n").write()
    assert await fill_system(tree, text) == "2026/11/15 10:50:28 星期日 丙午马年十月初七"
    Tree(root=tmp_path, settings="DEFAULT_TIMEZONE=Nowhere\n").write()
    assert (await fill_system(tree, text)).startswith("2026/11/15 01:50:28")


async def test_static_values_are_inert_and_their_folds_open_as_the_prompt_says(tmp_path: Path) -> None:
    tree = Tree(root=tmp_path, settings="PORT=6005\n").write()
    statics = {"W": "sunny {{Date}} <<<[TOOL_REQUEST]>>>", "F": FOLDED, "E": ""}
    ports: dict[str, Any] = {"statics": lambda: statics}
    assert await fill_system(tree, "{{W}}", **ports) == "sunny {\u200b{Date}} <<<\u200b[TOOL_REQUEST]>>>"
    assert await fill_system(tree, "{{E}}", **ports) == "[E 信息不可用]"
    assert await fill_system(tree, "{{F}}", **ports) == "always"
    assert await fill_system(tree, "[[VCPStaticFold::Lite]]{{F}}", **ports) == "always"
    full = "always\n\n---\n\nfile tools\n\n---\n\nmore"
    assert await fill_system(tree, "[[VCPStaticFold::Auto]] {{F}}[[VCPStaticFold::FULL]]", **ports) == full
    unmarked = "[===vcp_fold: 0.0 ===]\nall of it"
    assert await fill_system(tree, "{{S}}", statics=lambda: {"S": unmarked}) == unmarked


async def test_a_toolbox_shows_the_blocks_that_are_about_the_conversation(tmp_path: Path) -> None:
    tree = Tree(root=tmp_path, toolboxes={"Box": FOLDED}).write()
    similar = {"files": 0.7, "a box": 0.1}
    shown = await fill_system(tree, "{{Box}} {{toolbox:Box}}", similarity=lambda _: similar.get)
    assert shown == (
        "always\n\n---\n\nfile tools\n\n*(提示：当前上下文中还隐藏收纳了另外 1 个工具模块分组，"
        "您可以通过明确提问或强调相关语境来获得展开。)*"
    )
    assert await fill_system(tree, "{{toolbox:Box}}") == "always"


async def test_tools_port_key_and_emoji_are_inserted(tmp_path: Path) -> None:
    tree = Tree(root=tmp_path, settings="Image_Key=secret\n", emoji={"通用表情包": "a.jpg|b.jpg"}).write()
    tools = {"VCPOne": "- one", "VCPTwo": "- two"}
    text = "{{VCPTwo}}\n{{VCPAllTools}}\nhttp://127.0.0.1:{{Port}}/pw={{Image_Key}}/ {{通用表情包}} {{X表情包}}"
    assert await fill_system(tree, text, tools=lambda: tools, port=lambda: "7007") == (
        "- two\n- one\n\n---\n\n- two\nhttp://127.0.0.1:7007/pw=secret/ a.jpg|b.jpg [X表情包列表不可用]"
    )
    (tmp_path / "Plugin/ImageFileServer").mkdir()
    (tmp_path / "Plugin/ImageFileServer/config.env").write_text("Image_Key=own\n")
    assert await fill_system(tree, "{{Image_Key}}") == "own"
    assert (await fill_system(tree, "{{VCPDistributedServerList}}")).startswith("[VCP Distributed Server List]\n")


async def test_dynamic_tools_are_listed_and_those_of_the_conversation_described(tmp_path: Path) -> None:
    tree = Tree(root=tmp_path).write()
    tools = [
        ListedTool("Weather", "天气", "Tells the weather of a city.", "- weather text"),
        ListedTool("Music", "Music", "Plays a song in the house.", "- music text"),
        *[ListedTool(f"Other{number}", "", "Does a thing in the house.", f"- other {number}") for number in range(8)],
    ]

    async def ask(said: str) -> str:
        messages: list[Json] = [
            {"role": "system", "content": "{{VCPDynamicTools}}"},
            {"role": "user", "content": f"{said} {{{{VCPDynamicTools}}}}"},
        ]
        filled = await fill_messages(tree, messages, listed_tools=lambda: tools)
        assert filled[1]["content"].endswith("{{VCPDynamicTools}}")
        return str(filled[0]["content"])

    shown = await ask("Play a song in the house.")
    assert "- 天气 (Weather): Tells the weather of a city.\n- Music: Plays" in shown
    assert "- music text" in shown
    assert "- weather text" not in shown
    assert "- other" not in shown
    assert "- weather text" in await ask("北京今天天气如何")
    assert "- other 3" in await ask("[[VCPDynamicTools:tool=other3]]")
    (tree / "ToolConfigs").mkdir()
    config = tree / "ToolConfigs/dynamic_tool_bridge.config.json"
    config.write_text('{"maxBriefListItems": 1, "maxExpandedPlugins": 0}')
    assert (await ask("A song")).endswith("- and 9 more")
    config.write_text('{"enabled": false}')
    assert await ask("A song") == ""


async def test_changed_files_count_from_the_next_request_on(tmp_path: Path) -> None:
    tree = Tree(root=tmp_path, agents={"Nova": "old"}, settings="VarX=old\n").write()
    assert await fill_system(tree, "{{Nova}} {{VarX}} {{New}}") == "old old {{New}}"
    prompts = make_prompts(tree)

    async def ask() -> str:
        messages: list[Json] = [{"role": "system", "content": "{{Nova}} {{VarX}} {{New}}"}]
        filled: Any = await prompts.fill(PromptRequest(messages=messages, model="m", caller=ME))
        return str(filled.messages[0]["content"])

    assert await ask() == "old old {{New}}"
    Tree(root=tmp_path, agents={"Nova": "newer", "New": "fresh"}, settings="VarX=newer\n").write()
    assert await ask() == "newer newer"  # only one agent
    (tmp_path / "Agent/Nova.txt").unlink()
    assert "Error loading prompt for 'Nova'" in await ask()


async def test_results_of_tasks_come_from_this_caller_or_from_the_folder_of_results(tmp_path: Path) -> None:
    results = {
        "P-1": '{"message": "ready {{Date}}"}',
        "P-2": '{"status": "Succeed", "data": {"a": "二"}}',
        "P-3": '{"status": "Failed", "reason": "no"}',
        "P-4": "{}",
        "P-5": "no json",
    }
    tree = Tree(root=tmp_path, results=results).write()
    task = Task(
        id="t", call_id="c", plugin="P", task_id="own", state=TaskState.SUCCEEDED, created=0, updated=0, deadline=9,
        caller=ME, token_hash="", result={"message": "mine"},
    )  # fmt: skip

    async def find(plugin: str, task_id: str, caller: str) -> Task | None:
        return task if (plugin, task_id, caller) == ("P", "own", ME) else None

    async def ask(name: str, braces: int = 2) -> str:
        text = "{" * braces + f"VCP_ASYNC_RESULT::{name}" + "}" * braces
        (message,) = await fill_messages(tree, [{"role": "user", "content": text}], task=find)
        return str(message["content"])

    assert [await ask(f"P::{name}") for name in ("1", "2", "3", "4", "5", "6", "own")] == [
        "ready {\u200b{Date}}",
        '任务 P (ID: 2) 已成功完成。详情: {"a":"二"}',
        "任务 P (ID: 3) 处理失败。原因: no",
        "[任务 P (ID: 4) 已完成]",
        "[获取任务 P (ID: 5) 结果时出错]",
        "[任务 P (ID: 6) 结果待更新...]",
        "mine",
    ]
    assert [await ask("P::own", braces) for braces in (3, 4, 5)] == ["mine", "mine", "{mine}"]
    assert await ask("../P::1") == "{{VCP_ASYNC_RESULT::../P::1}}"


async def test_preprocessors_detectors_and_the_role_divider_follow_in_this_order(tmp_path: Path) -> None:
    settings = """
VarX=variable
Detector1=variable
Detector_Output1=detected
SuperDetector1=seen
SuperDetector_Output1=divided<<<[ROLE_DIVIDE_ASSISTANT]>>>an answer<<<[END_ROLE_DIVIDE_ASSISTANT]>>>
EnableRoleDivider=true
"""
    tree = Tree(root=tmp_path, settings=settings).write()
    stages: list[tuple[Stage, str]] = []

    async def preprocess(stage: Stage, messages: list[Json]) -> list[Json]:
        stages.append((stage, str(messages[0]["content"]) if isinstance(messages[0], dict) else ""))
        return messages

    asked: list[Json] = [
        {"role": "system", "content": "{{VarX}}{{TransBase64+}}"},
        {"role": "user", "content": "seen variable"},
    ]
    filled = await fill_messages(tree, asked, preprocess=preprocess)
    assert stages == [(Stage.FIRST, "{{VarX}}"), (Stage.MEDIA, "variable"), (Stage.REST, "variable")]
    assert filled == [
        {"role": "system", "content": "detected"},
        {"role": "user", "content": "divided"},
        {"role": "assistant", "content": "an answer"},
        {"role": "user", "content": " variable"},
    ]

    async def fail(stage: Stage, messages: list[Json]) -> list[Json]:
        raise OSError("the bridge is away")

    assert await fill_messages(tree, asked, preprocess=fail) == filled
    assert NOW.year == 2026


async def test_files_that_are_no_prompts_do_no_harm(tmp_path: Path) -> None:
    for name in ("agent_map.json", "toolbox_map.json", "sarprompt.json", "config.env"):
        (tmp_path / name).write_bytes(b'\xff[{"not: "json"')
    assert await fill_system(tmp_path, "{{Nova}} {{SarPromptAll}}.") == "{{Nova}} ."
    (tmp_path / "agent_map.json").write_text('{"Nova": "../../etc/\\u0000x", "Ke": 7}')
    assert "Error loading prompt" in await fill_system(tmp_path, "{{Nova}}")
    (tmp_path / "toolbox_map.json").write_text('{"Box": "../secret.txt"}')
    assert await fill_system(tmp_path, "{{Box}}") == "[ToolboxManager] 非法路径访问被拒绝: ../secret.txt"
